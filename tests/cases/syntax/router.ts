import { readFile } from "node:fs/promises";

export type Handler<T = unknown> = (request: Request, ...rest: T[]) => Promise<Response> | Response;

interface Route<T> {
  readonly path: string;
  method?: "GET" | "POST";
  handler: Handler<T>;
}

enum State {
  Idle,
  Busy = "busy",
}

abstract class Base {
  protected state: State = State.Idle;
  abstract close(): void;
}

export class Router<T extends object> extends Base {
  private routes: Array<Route<T>> = [];

  constructor(private readonly root: string, public limit: number = 100) {
    super();
  }

  on(path: string, handler: Handler<T>, method?: Route<T>["method"]): this {
    if (this.routes.length >= this.limit) {
      throw new Error(`more than ${this.limit} routes`);
    }
    this.routes.push({ path, handler, method: method ?? "GET" });
    return this;
  }

  async serve(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    for (const route of this.routes) {
      if (route.path === pathname && route.method === request.method) {
        return await route.handler(request);
      }
    }
    const body = await readFile(this.root + pathname, { encoding: "utf8" }).catch(() => null);
    return body === null ? new Response("not here", { status: 404 }) : new Response(body as string);
  }

  close(): void {
    this.routes.length = 0;
  }
}

export function isState(value: unknown): value is State {
  return typeof value === "string" && Object.values(State).includes(value as State);
}
