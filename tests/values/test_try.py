"""Exceptions as control flow: who catches what, in which order things happen, what is left of arrays."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from python_oracle import Case, Programs

programs = Programs()
on = programs.on


class Failure(Exception):
    pass


class Divergence(Failure):
    pass


class Overrun(Failure, IndexError):
    pass


# Handlers.


@on("v", v="4.0 -1.0 0.0 nan inf")
def a_returning_handler(x):
    try:
        return math.sqrt(x)
    except ValueError:
        return 0.0


@on("v w", v="4.0 -1.0 0.0", w="2.0 0.0")
def each_exception_has_its_handler(x, y):
    try:
        z = math.sqrt(x) / y
    except ValueError:
        z = -1.0
    except ZeroDivisionError:
        z = -2.0
    else:
        z += 10.0
    return z


@on("v w", v="4.0 -1.0", w="2.0 0.0")
def the_first_handler_that_matches(x, y):
    try:
        z = math.sqrt(x) / y
    except (ZeroDivisionError, IndexError):
        z = -1.0
    except ArithmeticError:
        z = -2.0
    except Exception:
        z = -3.0
    return z


@on("f64[4] i v", i="0 3 4 -5", v="2.0 0.0 -1.0")
def base_classes(x, i, y):
    s = 0
    try:
        x[0] = x[i] / y
    except LookupError:
        s = 1
    except ArithmeticError:
        s = 2
    try:
        x[1] = math.log(y)
        x[2] = x[i]
    except:  # noqa: E722
        s += 10
    return s


@on("f64[4] i v", i="0 4", v="2.0 0.0")
def not_caught_here(x, i, y):
    s = 1.0
    try:
        x[0] = 5.0
        s = x[i] / y
        x[1] = s
    except ZeroDivisionError:
        x[2] = 7.0
    x[3] = 9.0
    return s


@on("f64[3] v", v="1.0 0.0 -1.0")
def not_caught_by_the_else(x, y):
    try:
        x[0] = 1.0 / y
    except ZeroDivisionError:
        x[0] = 2.0
    else:
        x[1] = math.sqrt(y)
    return x[0]


@on("v", v="1.0 710.0 -1.0")
def handled_by_doing_nothing(x):
    y = -1.0
    try:
        y = math.exp(x)
        y = math.log(x) * y
    except (OverflowError, ValueError):
        pass
    return y


@on("n m", n="3 4611686018427387904 -9223372036854775808 -1", m="2 0 -2 9223372036854775807")
def integers_are_checked(n, m):
    r = 0
    try:
        r = n // m
    except ZeroDivisionError:
        r = 7
    except OverflowError:
        r = 8
    return r


# What has happened before the raise has happened.


@on("f64[5] v n", v="2.0 -3.0", n="2 5 6")
def effects_up_to_the_raise(x, y, n):
    k = -1
    s = 0.0
    try:
        for i in range(n):
            k = i
            x[i] = s
            s += math.sqrt(y + i)
            x[i] += s
    except ValueError:
        s = -s
    except IndexError:
        s += 100.0
    return s, k


@on("f64[3] i j", i="0 3", j="1 -4")
def order_of_evaluation(x, i, j):
    s = 0.0
    try:
        s = store_and_return(x, 0, 5.0) + x[i] + store_and_return(x, 1, 6.0) * x[j]
    except IndexError:
        s = x[0] + x[1]
    return s


def store_and_return(x, i, v):
    x[i] = v
    return v


@on("f64[3] v", v="0.0 2.0")
def the_target_is_evaluated_last(x, y):
    try:
        x[7] = store_and_return(x, 0, 1.0 / y)
    except IndexError:
        x[1] = 11.0
    except ZeroDivisionError:
        x[2] = 22.0


@on("f64[3] v i", v="0.0 2.0", i="0 9")
def augmented_in_place(x, y, i):
    try:
        x[i] += 1.0 / y
        x[1] *= 3.0
        x[i] /= math.sqrt(y - 3.0)
    except IndexError:
        x[1] = 11.0
    except (ZeroDivisionError, ValueError) as e:
        x[2] = 22.0


@on("v", v="1.0 -1.0 0.0")
def names_are_as_the_raise_left_them(x):
    a, b = 1, 2.0
    try:
        a = 2
        b = math.sqrt(x)
        a, b = 3, 1.0 / x
        a = 4
    except ValueError:
        b += 10.0
    except ZeroDivisionError:
        b += 20.0
    return a, b


@on("v", v="1.0 -1.0")
def names_that_only_the_body_binds(x):
    try:
        y = math.sqrt(x)
        z = y + 1.0
    except ValueError:
        z = 0.0
    return y + z


@on("f64[3] f64[3] v", v="1.0 -1.0 0.0")
def arrays_are_as_the_raise_left_them(x, y, a):
    u, v = x, y
    try:
        u[0] = math.sqrt(a)
        u, v = v, u
        v[1] = 1.0 / a
        u = u * 2.0
    except ValueError:
        u[2] = 5.0
    except ZeroDivisionError:
        u[2] = 6.0
    return u[0] + u[2] - v[1]


@on("f64[3] f64[4] v", v="1.0 -1.0")
def arrays_made_in_the_body(x, y, a):
    try:
        r = x * math.sqrt(a)
        r[0] = 5.0
    except ValueError:
        r = y + 1.0
    return r


# raise.


@on("v", v="1.0 -1.0 0.0")
def raised_in_the_body(x):
    try:
        if x < 0:
            raise ValueError("negative")
        if x == 0:
            raise ZeroDivisionError
        y = 1.0
    except ZeroDivisionError:
        y = 2.0
    except ValueError:
        y = 3.0
    return y


@on("f64[2] v", v="1.0 -1.0 0.0")
def raised_again(x, y):
    try:
        x[0] = 1.0 / y
        x[1] = math.sqrt(y)
    except ZeroDivisionError:
        x[0] = 5.0
        raise
    except ValueError:
        x[1] = 6.0
        raise
    return x[0]


@on("f64[2] i", i="1 2 -3 7")
def raised_again_with_its_message(x, i):
    try:
        y = x[i]
    except IndexError as e:
        x[0] = -1.0
        raise e
    return y


@on("f64[2] v", v="1.0 -1.0")
def another_is_raised(x, y):
    try:
        x[0] = math.sqrt(y)
    except ValueError as e:
        x[1] = 7.0
        raise RuntimeError(f"no root of {y}") from e
    return x[0]


@on("f64[2] v", v="1.0 -1.0")
def another_is_raised_and_caught(x, y):
    try:
        try:
            x[0] = math.sqrt(y)
        except ValueError:
            raise KeyError("inner") from None
        except KeyError:
            x[1] = 100.0
    except KeyError:
        x[1] = 7.0
    return x[0]


@on("f64[2] v", v="1.0 -1.0 0.0")
def raised_again_inside(x, y):
    s = 0.0
    try:
        try:
            s = 1.0 / math.sqrt(y)
        except ArithmeticError:
            s = 1.0
            raise
        except ValueError:
            s = 2.0
            raise
        s += 50.0
    except ZeroDivisionError:
        s += 10.0
    except ValueError:
        s += 20.0
    return s


@on("v", v="1.0 -1.0")
def asserted(x):
    try:
        assert x > 0, "positive"
        y = 1
    except AssertionError:
        y = 2
    return y


@on("v", v="3.0 1.0 -1.0 -3.0")
def classes_of_the_user(x):
    try:
        if x > 2:
            raise Divergence("far")
        if x > 0:
            raise Overrun
        if x > -2:
            raise Failure("near")
        y = 0
    except IndexError:
        y = 1
    except Divergence:
        y = 2
    except Failure:
        y = 3
    return y


@on("v", v="3.0 1.0 -1.0 -3.0")
def classes_of_the_user_uncaught(x):
    if x > 2:
        raise Divergence("far")
    try:
        if x > 0:
            raise Overrun("over")
        if x > -2:
            raise Failure(f"near {x}")
    except Divergence:
        return 1.0
    return 0.0


@on("v", v="1.0 -1.0 0.0")
def always_raises(x):
    try:
        if x > 0:
            raise ValueError
        raise IndexError
    except IndexError:
        r = 1
    except ValueError:
        r = 2
    return r


def fails(x):
    raise ArithmeticError("always")


@on("f64[2]")
def a_call_that_always_raises(x):
    s = 0.0
    try:
        x[0] = 1.0
        s = 2.0 * fails(x) + 1.0
        x[1] = 3.0
    except ArithmeticError:
        s += 5.0
    return s


@on("f64[2] v", v="1.0 -1.0")
def messages_are_printed(x, y):
    try:
        x[0] = math.sqrt(y)
        x[1] = x[5]
    except ValueError as e:
        print("value:", e)
    except IndexError as e:
        print(f"index: {e}!", str(e))


# Calls.


def root(x, i):
    if i > 2:
        raise IndexError("far")
    return math.sqrt(x[i])


@on("f64[5]:pos n", n="0 1 3 5")
@on("f64[5] n", n="1 3 5")
def raised_by_a_callee(x, n):
    k = 0
    t = 0.0
    try:
        for i in range(n):
            k = i
            t += root(x, i) + 1.0
            x[i] = t
    except IndexError:
        return t + k
    except ValueError:
        return -t - k
    return t


def guarded_root(x):
    try:
        return math.sqrt(x)
    except ValueError:
        return -1.0


@on("f64[5]")
def caught_by_a_callee(x):
    s = 0.0
    for i in range(x.size):
        s += guarded_root(x[i]) * 2.0
        x[i] = s
    return s


def half_guarded(x, y, z):
    s = 1.0
    try:
        z[0] += 1.0
        s = math.sqrt(x) / y
        z[1] += 1.0
    except ZeroDivisionError:
        s = 3.0
    else:
        s += 4.0
    z[2] += s
    return s


@on("f64[4] v w", v="4.0 -1.0", w="2.0 0.0")
def caught_by_either(z, x, y):
    r = 0.0
    try:
        r = 1.0 + half_guarded(x, y, z) * half_guarded(x + 1.0, y, z)
        z[3] = r
    except ValueError:
        r -= 1.0
    return r


@on("f64[5] v", v="0.5 -9.0")
def a_local_function_raises(x, low):
    def checked(v):
        if v < low:
            raise ValueError("low")
        return v * 2.0

    s = 0.0
    for i in range(x.size):
        try:
            s += checked(x[i])
        except ValueError:
            s -= 1.0
    return s


def first_above(x, limit):
    for i in range(x.size):
        if x[i] > limit:
            return i
    raise ValueError("none")


@on("f64[6] v", v="0.0 0.5 9.0")
def a_search_that_may_fail(x, limit):
    try:
        at = first_above(x, limit)
        x[at] = 100.0
    except ValueError:
        at = -1
    return at


def rows_of(a, i):
    return a[i] * 2.0


@on("f64[3,4] i", i="0 2 3")
def arrays_from_callees(a, i):
    try:
        r = rows_of(a, i)
        a[0, 0] = 1.0
    except IndexError:
        r = a[0].copy()
    return r


# Loops.


@on("f64[6] v", v="0.0 9.0")
def in_a_loop(x, limit):
    s = 0.0
    for i in range(x.size):
        try:
            s += math.sqrt(x[i])
            if s > limit:
                raise OverflowError
        except ValueError:
            s -= 1.0
        except OverflowError:
            s = 0.0
        x[i] = s
    return s


@on("f64[6] v", v="0.3 -9.0 9.0")
def loops_are_left_from_a_try(x, limit):
    s = 0.0
    for i in range(x.size):
        try:
            if x[i] > limit:
                break
            if x[i] < -0.3:
                continue
            s += math.sqrt(x[i] + 0.1)
        except ValueError:
            s += 100.0
            continue
        else:
            s += 1.0
        x[i] = s
    else:
        s = -s
    return s


@on("f64[6] v", v="0.3 -9.0 9.0")
def loops_are_left_from_a_handler(x, limit):
    s = 0.0
    i = -1
    while i < x.size:
        i += 1
        try:
            s += math.sqrt(x[i] - limit)
        except ValueError:
            if x[i] < 0:
                continue
            x[i] = 50.0
        except IndexError:
            break
        x[i] += 1.0
    return s, i


@on("f64[6] v", v="0.3 -9.0 9.0")
def returned_from_a_try_in_loops(x, limit):
    for i in range(x.size):
        for j in range(i):
            try:
                r = math.log(x[i] + x[j])
                if r > limit:
                    return r
            except ValueError:
                if x[i] < -0.5:
                    return x[i]
            finally:
                x[j] += 0.25
    return 0.0


@on("f64[4,5] v", v="0.0 -0.5 9.0")
def a_raise_leaves_all_loops(a, limit):
    i = j = -1
    try:
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                if a[i, j] < limit:
                    raise ValueError("found")
                a[i, j] = 0.0
            a[i, 0] = -1.0
    except ValueError:
        return i, j
    return -1, -1


@on("f64[5] n", n="3 5 7")
def the_condition_of_a_while_raises(x, n):
    i = 0
    try:
        while x[i] < 100.0 and i < n:
            x[i] += 1.0
            i += 1
    except IndexError:
        i = -i
    return i


@on("f64[5] n", n="3 5 7")
def a_while_whose_body_raises(x, n):
    i = 0
    try:
        while i < n:
            x[i] += math.sqrt(3.0 - i)
            i += 1
    except ValueError:
        return -i
    except IndexError:
        return 100 + i
    return i


@on("f64[5] f64[5] n", n="0 2 3 5 6")
def arrays_change_places_until_a_raise(x, y, n):
    u, v = x, y
    s = 0.0
    try:
        for i in range(n):
            u[i] = 0.5 * v[i] + s
            s += math.sqrt(4.0 - i)
            u, v = v, u
    except ValueError:
        u[0] = 77.0
    except IndexError:
        v[0] = 88.0
    return u[0], v[1]


@on("f64[5] v", v="1.0 9.0 -9.0")
def names_that_the_loop_binds(x, limit):
    try:
        for i in range(x.size):
            t = x[i] * 2.0
            if t > limit:
                raise ValueError
            r = t + 1.0
    except ValueError:
        return t, i
    return r, -1


@on("f64[5] n", n="1 4 9")
def an_unrolled_loop_raises(x, n):
    s = 0
    try:
        for k in (0, 3, 6, 2):
            if k > n:
                raise ValueError
            x[k] = 1.0
            s += 1
    except (ValueError, IndexError):
        s += 10
    return s


@on("f64[3] n", n="1 4")
def the_else_of_a_loop_raises(x, n):
    s = 0
    try:
        for i in range(n):
            x[i] = 1.0
            s = i
        else:
            raise KeyError("over")
    except KeyError:
        s += 10
    except IndexError:
        s += 20
    return s


# finally.


@on("f64[4] v w", v="4.0 -1.0", w="2.0 0.0")
def finally_runs_always(x, a, b):
    s = 0.0
    try:
        x[0] = 1.0
        s = math.sqrt(a) / b
    except ZeroDivisionError:
        x[1] = 2.0
        s = 1.0
    else:
        x[2] = 3.0
    finally:
        x[3] = s + 10.0
    x[0] += 5.0
    return s


@on("f64[4] i", i="0 4")
def finally_keeps_the_message(x, i):
    try:
        y = x[i]
    finally:
        x[0] = 42.0
    return y


@on("f64[4] v", v="4.0 -1.0 0.0")
def finally_around_a_return(x, a):
    try:
        return math.sqrt(a) + x[0]
    finally:
        x[0] = 100.0


@on("f64[4] v", v="4.0 -1.0 0.0")
def a_return_in_finally_overrides(x, a):
    try:
        x[1] = 1.0 / a
        return math.sqrt(a)
    finally:
        x[0] = 100.0
        if a <= 0:
            return -1.0


@on("f64[4] v", v="4.0 -1.0 0.0")
def a_return_in_finally_swallows(x, a):
    try:
        x[1] = 1.0 / a
        x[2] = math.sqrt(a)
    finally:
        return x[1] + x[2]


@on("f64[6] v", v="0.2 9.0 -9.0")
def leaving_a_loop_in_finally(x, limit):
    s = 0.0
    for i in range(x.size):
        try:
            s += math.sqrt(x[i])
            if s > limit:
                return s
        finally:
            x[i] = s
            if i == 3:
                break
            if i % 2 == 0:
                continue
        s += 10.0
    else:
        s = -s
    return s + 0.5


@on("f64[6] v n", v="0.2 9.0", n="2 6 8")
def left_through_finally(x, limit, n):
    s = 0.0
    for i in range(n):
        try:
            if i > 5:
                break
            if x[i] > limit:
                continue
            s += 1.0
        finally:
            s += 0.25
            x[0] = s
        s += 10.0
    return s


@on("f64[6] v", v="0.2 9.0 -9.0")
def returned_through_two(x, limit):
    try:
        try:
            for i in range(x.size):
                if x[i] > limit:
                    return i
                x[i] = 0.0
        finally:
            x[0] = 7.0
    finally:
        x[1] = x[0] + 1.0
    return -1


@on("f64[3] v", v="1.0 -1.0 0.0")
def raised_in_finally(x, a):
    r = 0.0
    try:
        try:
            x[0] = math.sqrt(a)
        finally:
            x[1] = 1.0 / a
            r = 3.0
    except ZeroDivisionError:
        r += 1.0
    except ValueError:
        r += 2.0
    return r


@on("f64[3] v", v="1.0 -1.0 0.0")
def a_try_in_a_handler_and_in_finally(x, a):
    try:
        x[0] = math.log(a)
    except ValueError:
        try:
            x[1] = math.sqrt(a)
        except ValueError:
            x[1] = -7.0
    finally:
        try:
            x[2] = 1.0 / a
        except ZeroDivisionError:
            x[2] = -9.0
    return x[0] + x[1]


@on("f64[4] v", v="4.0 -1.0 0.0")
def a_loop_in_finally_returns(x, a):
    try:
        x[0] = math.sqrt(a)
        return 1.0
    finally:
        for i in range(x.size):
            x[i] += 1.0
            if a == 0.0 and i == 2:
                return 2.0


@on("f64[3] i", i="0 4")
def finally_in_a_callee(x, i):
    try:
        s = counted(x, i)
    except IndexError:
        s = -1.0
    return s + x[1]


def counted(x, i):
    try:
        x[0] += 1.0
        return x[i]
    finally:
        x[1] += 10.0


# Every implicit raise.


@on("f64[3] f64[n]", n="3 4 2")
def shapes_that_do_not_broadcast(x, y):
    try:
        z = x + y
        s = z.sum()
    except ValueError:
        s = -1.0
    return s


@on("f64[3] f64[n]", n="3 4 2")
def caught_shapes_are_checked_again(x, y):
    s = 0.0
    try:
        s = (x + y).sum()
    except ValueError:
        s = -1.0
    x[:] = x + y
    return s


@on("f64[4] f64[3,n]", n="4 5")
def products_that_do_not_fit(x, a):
    try:
        y = a @ x
    except ValueError:
        return -1.0
    return y.sum()


@on("f64[5] n", n="1 3 4")
def index_arrays_are_checked(x, n):
    at = np.array([0, 2, 4]) + n - 1
    try:
        y = x[at]
        x[at] = 1.0
    except IndexError:
        y = x[:3] * 2.0
    return y


@on("f64[6] n", n="2 3 4 5")
def shapes_that_do_not_divide(x, n):
    try:
        y = x.reshape(n, -1).sum(axis=0).sum()
    except ValueError:
        y = -1.0
    return y


@on("f64[3] v", v="0.5 -0.5 9.0")
def unbound_names(x, a):
    if a < 1.0:
        t = a
    try:
        x[0] = t
        if a > 0:
            u = 1.0
        x[1] = u
    except UnboundLocalError:
        x[2] = 5.0
    except NameError:
        x[2] = 6.0


@on("v", v="1.5 nan inf -inf")
def floats_without_an_int(x):
    try:
        return int(x)
    except OverflowError:
        return -1
    except ValueError:
        return -2


@on("v w", v="2.0 0.0", w="-1.0 3.0 5000.0")
def powers(x, y):
    try:
        return x**y
    except ZeroDivisionError:
        return -1.0
    except OverflowError:
        return -2.0


@on("n m", n="5 -7", m="2 0")
def remainders(n, m):
    try:
        return n % m, n // m
    except ZeroDivisionError:
        return m, n


@on("f64[4] n", n="0 -1 3")
def sizes(x, n):
    try:
        y = np.zeros(n)
        return y.size + x[:n].min()
    except ValueError:
        return -1.0


@on("f64[4] n", n="1 0 -2")
def steps_of_zero(x, n):
    s = 0.0
    try:
        for i in range(0, 4, n):
            s += i
        s += x[::n].sum()
    except ValueError:
        s = -1.0
    return s


@on("f64[n]", n="2 3 4")
def unpacked(x):
    try:
        a, b, c = x
    except ValueError:
        return x[0]
    return a + b * c


@on("f64[4] v i", v="0.0 2.0", i="0 9")
def in_conditions(x, a, i):
    try:
        if 1.0 / a > 0.1 and x[i] < 5.0:
            r = 1
        elif x[i] > 0:
            r = 2
        else:
            r = 3
    except (ZeroDivisionError, IndexError):
        r = 4
    return r


@on("f64[4] v i", v="0.0 2.0 -1.0", i="0 9")
def in_conditional_expressions(x, a, i):
    try:
        r = float(x[i]) if a > 0 else 1.0 / a
        s = bool(x[0] < 0.0) or bool(x[i] > 0) or math.sqrt(a) > 0
        t = 0.0 < a < math.log(a + 1.0) < float(x[i])
    except ZeroDivisionError:
        return 1.0, True, True
    except IndexError:
        return 2.0, True, True
    except ValueError:
        return 3.0, True, True
    return r, s, t


# Lists and objects.


@on("f64[3] n", "f64[3]:pos n", n="1 2 3 5")
def a_list_is_as_long_as_the_raise_left_it(x, n):
    roots = []
    try:
        for i in range(n):
            roots.append(math.sqrt(x[i]))
        roots.append(-1.0)
    except ValueError:
        roots.append(5.0)
    except IndexError:
        roots.pop()
    return sum(roots)


@on("f64[3] v", v="-1.0 2.0")
def lists_grow_around_finally(x, v):
    found, s = [1.0], 0.5
    try:
        found.append(x[0])
        s += math.sqrt(v)
        found.append(x[1])
    except ValueError:
        found.append(x[2])
        s += found[-1]
    finally:
        s *= 2.0
        found.append(s)
    return s + sum(found) * len(found)


@on("f64[3] v", v="-9.0 0.0")
def raised_in_a_comprehension(x, a):
    try:
        return sum([math.sqrt(v - a) for v in x])
    except ValueError:
        return -1.0


@dataclass
class Pair:
    a: float
    b: float


def divided(p, y):
    p.a += 1.0
    p.b = 1.0 / y
    p.a += 1.0


@on("v w", v="1.0", w="4.0 1.0 0.0 2.0")
def fields_are_as_the_raise_left_them(x, y):
    p = Pair(x, 2.0)
    try:
        for i in range(3):
            divided(p, y - i)
    except ZeroDivisionError:
        p.b = 100.0
    return p.a + 10 * p.b


@on("v w", v="4.0 1.0 0.0 -1.0", w="2.0 0.0")
def names_bound_in_conditions(x, y):
    s = 0.0
    try:
        if (r := math.sqrt(x)) > 1 and (q := 1.0 / y) > 0:
            s = r + q
        else:
            s = r
    except (ValueError, ZeroDivisionError):
        s = -1.0
    return s


@on("f64[4] k n", k="0 1 2 3 4 5 6 7", n="0 4 5 -3 -9")
def subscripts_of_loops(x, k, n):
    r, s = 0, 0.0
    try:
        if k == 0:
            for i in range(x.size):
                s += x[i + 1]
        elif k == 1:
            for i in range(n):
                s += x[i]
        elif k == 2:
            for i in range(x.size):
                s += x[x.size - i]
        elif k == 3:
            for i in range(x.size):
                for j in range(i + 2):
                    s += x[j]
        elif k == 4:
            for i in range(x.size):
                s += x[i - 5]
        elif k == 5:
            for i in range(n, x.size):
                s += x[i]
        elif k == 6:
            for i in range((x.size + 1) // 2):
                s += x[2 * i + 1] * x[x.size - 1 - i]
        else:
            for i in range(x.size - 1, n, -1):
                s += x[i]
    except IndexError:
        r = 1
    return r, float(s)


# Uncaught.


@on("f64[4] v n", v="2.0 -1.0 0.0", n="3 6")
def uncaught_leaves_arrays_as_they_are(x, a, n):
    for i in range(n):
        try:
            x[i] = 1.0 / a
            x[0] += math.log(a)
        except ZeroDivisionError:
            x[i] = -1.0
        x[1] += 1.0
    return x.sum()


@on("f64[4] v", v="2.0 -1.0")
def a_handler_raises(x, a):
    try:
        x[0] = math.sqrt(a)
    except ValueError:
        x[1] = 5.0
        x[2] = math.log(a)
        x[3] = 6.0
    return x[0]


@on("f64[5] v", v="2.0 -1.0 0.0")
def nested_deeply(x, a):
    s = 0.0
    for i in range(3):
        try:
            try:
                try:
                    s += 1.0 / (a + i)
                    x[i] = s
                finally:
                    s += 1.0
                    x[3] += s
            except ValueError:
                s += 1000.0
            finally:
                s += 2.0
        except ZeroDivisionError:
            s += 10.0
            for j in range(2):
                try:
                    s += math.sqrt(a - j)
                except ValueError:
                    s += 0.125
                    continue
                x[4] += s
    return s


@pytest.mark.parametrize("case", programs.cases, ids=str)
def test_python_agrees(case: Case) -> None:
    case.check()
