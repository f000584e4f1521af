class Node:
    def __init__(self, value, next=None):
        self.value = value
        self.next = next


def find(head, value):
    node = head
    while node is not None:
        if ▮node.value == value▮:
            return node
        node = node.next
    return None
