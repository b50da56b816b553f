"""Small programs of a float x and an integer n, with control flow that depends on them."""

import collections

import samegrad as tf

Pair = collections.namedtuple("Pair", "a b")


def if_else(x, n):
    if x > 0:
        y = x * 2
    else:
        y = -x
    return y


def if_without_else(x, n):
    y = x
    if n > 2:
        y = y + 1
    return y


def elif_chain(x, n):
    if n == 0:
        y = x
    elif n == 1:
        y = x * 2
    elif n < 4:
        y = x * 3
    else:
        y = x * 4
    return y


def nested_ifs(x, n):
    y = 0.0
    if x > 0:
        if n > 2:
            y = x
        else:
            y = x * 10
    elif n > 2:
        y = x * 100
    return y


def early_return(x, n):
    if x < 0:
        return -x
    if n > 2:
        return x * 5
    return x


def early_return_of_structures(x, n):
    if x < 0:
        return {"a": (x, 1.0), "b": [Pair(n, x)]}
    return {"a": (2 * x, x), "b": [Pair(7, -x)]}


def return_in_nested_blocks(x, n):
    if n > 1:
        if x > 0:
            return x
        x = x - 1
    y = x * 2
    if y < -5:
        return y
    return y + 1


def while_loop(x, n):
    i = 0
    while i < n:
        x = x * 2
        i += 1
    return x, i


def while_with_break(x, n):
    i = 0
    while i < 10:
        if i == n:
            break
        x += 1
        i += 1
    return x


def while_true(x, n):
    i = 0
    while True:
        if i >= n:
            break
        i = i + 1
        x = x * 1.5
    return x


def while_with_continue(x, n):
    i = 0
    total = 0.0
    while i < n:
        i += 1
        if i % 2 == 0:
            continue
        total += x
    return total


def while_with_else(x, n):
    i = 0
    while i < n:
        if x < 0:
            break
        i += 1
    else:
        x = x + 100
    return x, i


def return_in_a_loop(x, n):
    i = 0
    while i < n:
        if x > 6:
            return x * 100
        x = x * 2
        i += 1
    return x


def return_in_nested_loops(x, n):
    for i in tf.range(n):
        for j in tf.range(3):
            if i + j == 3:
                return x + tf.cast(i * 10 + j, "float32")
    return x


def for_range(x, n):
    total = tf.zeros_like(x)
    for i in tf.range(n):
        total += x * tf.cast(i, "float32")
    return total


def for_python_range_of_a_tensor(x, n):
    total = 0
    for i in range(n):
        total += i
    return total


def for_range_with_bounds(x, n):
    total = 0
    for i in tf.range(10, n, -3):
        total = total * 10 + i
    for i in range(1, n, 2):
        total = total * 10 + i
    return total


def for_range_of_floats(x, n):
    total = 0.0
    for v in tf.range(0.0, tf.abs(x), 0.75):
        total += v
    return total


def for_rows(x, n):
    rows = tf.reshape(tf.cast(tf.range(6), "float32"), (3, 2)) + x
    y = tf.zeros(2)
    for row in rows:
        y = y * 2 + row
    return y


def for_enumerate(x, n):
    y = 0.0
    for i, v in enumerate(tf.stack([x, x + 1, x * x]), 1):
        y += tf.cast(i, "float32") * v
    return y


def for_zip(x, n):
    y = 0.0
    for a, (b, c) in zip(
        tf.stack([x, x + 1]), enumerate(tf.stack([x, x + 3, x + 5])), strict=False
    ):
        y += a * c + tf.cast(b, "float32")
    return y


def for_with_break_and_continue(x, n):
    y = x
    for i in tf.range(10):
        if i == 1:
            continue
        if i > n:
            break
        y = y * 2 + 1
    return y


def for_with_else(x, n):
    for i in tf.range(4):
        if i == n:
            y = x
            break
    else:
        y = -x
    return y


def loop_variable_after_the_loop(x, n):
    i = -1
    for i in tf.range(n):
        x += 1
    return i, x


def python_list_with_a_break_that_depends_on_a_tensor(x, n):
    y = x
    for factor in [1.0, 2.0, 3.0, 4.0]:
        if y > 5:
            break
        y = y * factor + 1
    return y


def python_list_with_a_return_that_depends_on_a_tensor(x, n):
    for factor in (1.0, 2.0, 3.0):
        if x * factor > 5:
            return x * factor
    return x - 1


def nested_loops(x, n):
    total = 0.0
    for i in tf.range(n):
        j = 0
        while j < i:
            total += x
            j += 1
    return total


def and_or_not(x, n):
    a = x > 0 and n > 2
    b = x > 0 or n > 2
    c = not (x > 0)
    d = x > -100 and (n > 1 or not x > 0) and n < 4
    return a, b, c, d


def values_of_and_and_or(x, n):
    return (n and n + 1), (n or 7), (x or x + 1)


def chained_comparison(x, n):
    return 0 < n <= 2 < x + 10


def ternary(x, n):
    return (x if x > 0 else -x) + (1.0 if n > 2 else 0.0)


def a_chain_of_ternaries(x, n):
    return 1 if n < 1 else 2 if n < 3 else 3


def numbers_change_their_type(x, n):
    total = 0
    for i in tf.range(n):
        total += x * 0.5
    return total


def collatz(x, n):
    steps = 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def attributes_and_items(x, n):
    class Box:
        pass

    box = Box()
    box.value = x
    table = {"count": 0}
    i = 0
    while i < n:
        box.value = box.value * 2
        if box.value > 4:
            table["count"] = table["count"] + 1
        i += 1
    return box.value, table["count"]


def structures_in_a_loop(x, n):
    state = {"sum": x, "pair": (0, x)}
    i = 0
    while i < n:
        state = {"sum": state["sum"] + 1, "pair": (state["pair"][0] + i, state["sum"])}
        i += 1
    return state


def helper(x, n):
    if n > 2:
        return x
    return -x


def calls_of_functions(x, n):
    def inner(y):
        while y > 3:
            y = y - n_float
        return y

    n_float = tf.cast(n, "float32") + 1.0
    choose = lambda y: y if y > 0 else y * y  # noqa: E731
    return inner(x), choose(x), helper(x, n), tf.function(helper)(x, n)


def recursion(x, n, depth=3):
    if depth == 0:
        return x
    if x > 0:
        return recursion(x - 1, n, depth - 1) * 2
    return recursion(x + 1, n, depth - 1)


def in_with_and_try(x, n):
    with tf.GradientTape() as tape:
        tape.watch(x)
        if x > 0:
            y = x * x
        else:
            y = -x
        if n > 3:
            return y
    try:
        if n > 2:
            return y * 2
        y += 1
    except ValueError:
        y = 0.0
    else:
        y += 10
    finally:
        y = y + 1
    return y


def augmented_and_deleted(x, n):
    y = x
    if n > 0:
        z = y + 1
        y *= z
        del z
    return y


def max_and_min(x, n):
    return max(x, -x), min(n, 2, 1), max(tf.stack([x, x + 1])), all(tf.stack([x > 0, n > 0]))


def a_match(x, n, kind="double"):
    match kind:
        case "double" if len(kind) > 3:
            y = x * 2 if x > 0 else x
        case _:
            y = x
    return y


def a_walrus(x, n):
    if (y := x * 2) > 4:
        return y
    return y + 1


PROGRAMS = [
    if_else, if_without_else, elif_chain, nested_ifs, early_return, early_return_of_structures,
    return_in_nested_blocks, while_loop, while_with_break, while_true, while_with_continue,
    while_with_else, return_in_a_loop, return_in_nested_loops, for_range,
    for_python_range_of_a_tensor, for_range_with_bounds, for_range_of_floats, for_rows,
    for_enumerate, for_zip, for_with_break_and_continue, for_with_else,
    loop_variable_after_the_loop, python_list_with_a_break_that_depends_on_a_tensor,
    python_list_with_a_return_that_depends_on_a_tensor, nested_loops, and_or_not,
    values_of_and_and_or, chained_comparison, ternary, a_chain_of_ternaries,
    numbers_change_their_type, collatz, attributes_and_items, structures_in_a_loop,
    calls_of_functions, recursion, in_with_and_try, augmented_and_deleted, max_and_min, a_match,
    a_walrus,
]  # fmt: skip
