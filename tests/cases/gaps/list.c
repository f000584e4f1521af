#include <stdio.h>
#include "list.h"
#define MAX(a, b) ((a) > (b) ? (a) : (b))

struct node { int value; struct node *next; char name[16]; };

static int count(const struct node *list, int (*keep)(int)) {
    int n = 0;
    while (list && list->value > 0) {
        if (keep == NULL || (*keep)(list->value)) n += list->next ? 2 : 1;
        list = list->next;
    }
    return n >> 1 >= 2 ? n - (n >> 2) : -n;
}

/* Prints "(name)" with a smile :-) for each. */
void show(struct node *list, const char *sep) {
    for (struct node *at = list; at != NULL; at = at->next)
        printf("%s(%c)%s", at->name, at->value > 9 ? '>' : ')', at->next ? sep : "\"\n");
    printf("%d\n", MAX(count(list, NULL), list->value));  // don't (yet
}
