;;; dg.el --- Code infilling by a text-diffusion model, with lsp-mode  -*- lexical-binding: t; -*-

;; lsp-mode 10 or newer, installed as a package; it shows suggestions by itself.  C-RET takes a suggestion, C-n and C-p show others, ESC hides it.

;;; Code:

(require 'lsp-mode)

(defvar dg-command '("dg-lsp" "serve")
  "Command line of the server.")

(defvar dg-settings nil
  "Settings of the server, a plist or hash table, as in its settings.schema.json.")

(lsp-register-client
 (make-lsp-client
  :new-connection (lsp-stdio-connection (lambda () dg-command))
  :activation-fn (lambda (_file _mode) t)
  :initialization-options (lambda () dg-settings)
  :add-on? t
  :server-id 'dg))

(provide 'dg)
;;; dg.el ends here
