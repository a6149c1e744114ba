"""Writes tokenizer/chat/testdata/jinja.json: what jinja2 3.1 renders, with the settings of transformers' chat templates and
with those of lm-evaluation-harness's texts, or null where it raises an exception.

    python3 tools/golden/jinja_golden.py > tokenizer/chat/testdata/jinja.json
"""
import json
import random

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

VARS = {"L": [{"r": "u", "n": 2}, {"r": "A", "n": 1}, {"r": "u", "n": 3}], "D": {"B": 1, "a": 2, "C": 0}, "W": ["b", "A", "a", "B"],
        "N": [3, 1.5, -2, 0], "T": "One two-three (four)\nfive", "E": [], "Z": None, "H": "<a href='x'>&\"", "F": 2.5, "K": {"x": {"y": [1, 2]}}}
MESSAGES = [{"role": "user", "content": "hello", "n": None, "e": "", "d": {}, "d2": {"k": 1}, "f": 2.5, "b": True, "i": 3},
            {"role": "assistant", "content": None, "t": [{"type": "function", "function": {"name": "g", "arguments": {"x": 1, "y": "é"}}}]},
            {"role": "user", "content": "bye"}]

# In a list, and alone, in both kinds of templates.
EXPRESSIONS = r"""
9007199254740993 | round
9007199254740993 | round(2)
'\x7f' | tojson(true)
[1, 1.0, true, 2] | unique | list
W | unique | list
W | unique(true) | list
W | unique(case_sensitive=true) | list
L | unique(attribute='r') | list | length
L | join(',', attribute='r')
L | join(attribute='n')
L | join(d='-', attribute='n')
W | sort
W | sort(reverse=true)
W | sort(case_sensitive=true)
L | sort(attribute='n') | map(attribute='n') | list
L | sort(attribute='r') | map(attribute='n') | list
L | sort(reverse=true, attribute='n') | map(attribute='n') | list
W | sort(true, true)
W | max
W | min
L | map(attribute='r') | list
L | map(attribute='q', default='d') | list
W | map('upper') | list
W | map('replace', 'b', 'x') | list
L | selectattr('r') | list | length
L | selectattr('r', 'equalto', 'u') | list | length
L | selectattr('r', '==', 'u') | list | length
L | selectattr('n', '>', 1) | list | length
L | selectattr('r', 'in', ['u']) | list | length
L | rejectattr('r', 'equalto', 'u') | map(attribute='n') | list
L | rejectattr('q', 'defined') | list | length
N | select('>', 0) | list
N | select('odd') | list
N | reject('<', 1) | list
N | select | list
W | select('in', ['a']) | list
N | first
N | last
E | first is defined
T | wordcount
T | trim
'  xyx ' | trim
'xyx' | trim('x')
T | title
T | capitalize
T | upper
H | e
H | escape
H | safe
H ~ 'x'
(H | e) ~ '<'
'5' | int
'5.7' | int
'z' | int(9)
'z' | int(default=9)
'0x1F' | int(0, 16)
'1A' | int(base=16)
3.99 | int
-3.99 | int
'2.5' | float
'z' | float
'z' | float(1.5)
3 | float
2.5 | round
3.5 | round
-2.5 | round
2.567 | round(2)
2.567 | round(1, 'floor')
2.561 | round(1, 'ceil')
42.55 | round(1, method='floor')
1234.5 | round(-2)
-5 | abs
-5.5 | abs
'' | default('d')
'' | default('d', true)
0 | default('d', true)
0 | default('d', boolean=true)
nope | default('d')
nope | d('x')
nope is defined
D.nope is defined
D['B']
D.nope | default('q')
K.x.y[1]
K['x']['y'] | length
D | length
D | list
D | count
D | first
'abc' | list
'abc' | first
'abc' | last
'abc' | length
42 | string
1.0 | string
[1, 'a'] | string
true | string
'x' | tojson
H | tojson
'é\u2028' | tojson
'é😀' | tojson(ensure_ascii=true)
'é😀' | tojson(true)
[1, 2] | tojson(indent=0)
{'a': [1]} | tojson(indent=0)
{'a': []} | tojson(indent=1)
[1, 2] | tojson(indent='')
{'a': 1} | tojson(indent='--')
[{}] | tojson(indent=2)
{'a': 1} | tojson(separators=(',', ':'), indent=1)
'a\nb' | indent(2)
'\nb' | indent(2, true)
'a\n' | indent(2)
'a\n\n' | indent(2, false, true)
'' | indent(2, true)
'a\r\nb' | indent(1)
'\n\na\n' | indent(1, true, false)
'\n\na\n' | indent(1, true, true)
'a,b' | replace(',', ';')
'aaa' | replace('a', 'b', 2)
'aaa' | replace('a', 'b', count=1)
'aaa' | replace(old='a', new='b')
[1,2,3] | reverse | list
'abc' | reverse
(1,2,3) | list
[1,2,3] | length
[1,[2,3]] | string
not 1 == 2
not true or true
true and false or true
1 or 0
0 or 'x'
1 and 'x'
0 and 'x'
1 if 0 else 2 if 0 else 3
'a' if true
-2 ** 2
2 ** 3 ** 2
2 ** 0.5
-7 // 2
7 // -2
-7 % 3
7.5 // 2
1 / 2
4 / 2
2 ** 62
9007199254740993
9223372036854775807
1_000
1e3
1.5e-7
'a' * 3
3 * 'a'
[1] + [2]
'a' + 'b'
'a' in 'abc'
'a' in W
'B' in D
3 not in N
none in [none]
1 in [1.0]
[1] in [[1]]
[1,2] == [1,2]
{'a':1} == {'a':1}
'a' == 1
none == false
'b' > 'a'
[1,2] < [1,3]
1 is integer
1.0 is integer
1.0 is float
true is integer
true is boolean
true is number
1 is boolean
'a' is string
'a' is sequence
'a' is iterable
[1] is sequence
[1] is mapping
{} is mapping
{} is sequence
{} is iterable
1 is iterable
none is none
nope is undefined
none is defined
3 is odd
4 is even
4 is divisibleby 2
4 is divisibleby(3)
'a' is eq 'a'
'a' is equalto('b')
1 is ne 2
1 is lt 2
2 is ge 2
2 is gt 2
1 is in [1,2]
'x' is in 'xyz'
1 is not in [1,2]
'abc' is lower
'ABC' is upper
true is true
1 is true
false is false
0 is false
[1] is sameas [1]
none is sameas none
'a' is callable
range is callable
N[0]
N[-1]
N[1:]
N[:-1]
N[::2]
N[::-1]
N[-2:]
N[5:]
N[1:3:2]
N[9] is defined
'hello'[1:3]
'hello'[::-1]
'hello'[-3:]
'héllo'[1]
W[0].upper()
'a.b.c'.split('.')[-1]
'a.b.c'.split('.', 1)
'a.b.c'.rsplit('.', 1)
'x'.join(W)
'abc'.find('c')
'abc'.count('b')
'aXb'.swapcase()
D.keys() | list
D.values() | list
D.get('B')
D.get('q', 7)
D.get('q') is none
W.index('A')
range(3) | list
range(1, 10, 4) | list
dict(a=1, b=2)
dict(b=1, a=2)
'it\'s'
["it's"]
['a\\b', 'tab\t', '\x01', 'é', '\u200b']
1.0
1e16
1e22
123456789012345678
0.1 + 0.2
1/3
-0.0
[0.1, 1e-7]
T.splitlines()
T | length > 3
T|length
D | tojson
L | tojson
K | tojson(indent=2)
F | int
F | string ~ 'a'
(F | string) + 'a'
'a' | upper ~ 'b'
-F | abs
[F, -F] | max
W | join | upper
W | list | length
('a', 'b') | join('+')
{'a': 1, 'b': 2} | join('-')
'abc' | join('-')
{} or 'e'
[] or 'e'
L[0].r
L[0]['r']
L[-1].n
L[0].get('r')
'A' ~ L[0]
L
'a' < 1 is defined
W | last
W | length
[] | last is defined
[3,1] | sort | first
W[1:] + ['z']
'äöü' | upper
'ß' | upper
'ß' | capitalize
'éa b' | title
"don't stop" | title
"x.y z/w" | title
'a\u00a0b' | wordcount
'  ' | trim | length
'\u3000x\u3000' | trim
'a' | e
1 | e
[1] | length
true | upper
1 | upper
1.5 | replace('.', ',')
[1,2] | replace('1', 'x')
12 | trim
'abc'[5] is defined
'abc'[1:99]
'abc'[-99:2]
N | sort
N | sort(reverse=true)
[true, 2] | max
[] | min is defined
1 ~ 1
'a' * 'b'
'a' * 1.5
1.0 * 3
5 % 2.5
-5.5 % 2
2 // 0.3
'abc' > 5
none < 1
none
[none, nope is defined]
'a' ~ none
'a' ~ Z ~ 1
'a' + none
none + 'a'
'a' + 1
'a' + ['b']
[1] + 'a'
[1] + (2,)
nope + 1
nope ~ 'a'
-nope
nope.x
nope['x']
nope()
nope < 1
nope == none
nope == nope
nope in [1]
1 in nope
'a' in none
none.x is defined
none['x'] is defined
Z.x.y
Z.x
D.nope.x
D['nope']
D['nope'] ~ 'x'
L[9]
L[9].r
L[0].zzz
L[0].zzz == none
L[0].zzz is none
L[0].zzz or 'x'
not L[0].zzz
nope | length
nope | list
nope | join(',')
nope | upper
nope | trim
nope | string
nope | tojson
nope | int
nope | first
nope | items | list
nope | map('upper') | list
nope | default(none)
nope | default(none, true)
none | default('d')
none | default('d', true)
none | default('d', boolean=true)
none | trim
none | upper
none | string
none | length
none | list
none | tojson
none | int
none | join
none | items | list
none | map('upper') | list
none | selectattr('x') | list
none | first
[none, 1] | join('-')
[none, 'a'] | map('default', 'q', true) | list
{'a': none} | tojson
{'a': none}
{'a': none}.a
{'a': none}.get('a', 1)
{'a': none}.get('b')
{none: 1}[none]
none == none
none != false
none < none
none and 1
none or 1
none if none else 2
L | map(attribute='q') | list
L | map(attribute='q') | map('default', 'z') | list
L | selectattr('q') | list
L | selectattr('q', 'defined') | list
L | selectattr('q', 'none') | list
L | map(attribute='q.z') | list
1 < 2 < 3
1 < 3 < 2
3 > 2 > 1 > 0
1 < F < 3
1 == 1 == 1
1 == 1 == true
1 < 2 == true
1 in [1] == true
1 < 2 in [2]
'a' < 'b' < 'c' and 1 <= 1 < 2
1 not in [2] != 3
(1 < 2) < 3
nope < 1 < 2
()
(1,)
(1)
(1, 2)
(1, 2,)
1, 2
1,
(1, 'a', none, (2,))
(1, 2) == [1, 2]
(1, 2) == (1, 2)
(1, 2) < (1, 3)
(1, 2) + (3,)
(1, 2) * 2
(1, 2)[0]
(1, 2)[::-1]
(1, 2) | tojson
(1, 2) is sequence
1 in (1, 2)
'abc'.startswith(('x', 'a'))
'abc'.startswith(['a'])
{(1, 2): 3}[1, 2]
{(1, 2): 3}
{[1]: 2}
[1, 2, 3,]
[,]
{'a': 1,}
{'a': 1, 'a': 2}
{1: 'i', 1.0: 'f', true: 'b'}
range(3,)
D.items() | list
D.keys()
D.values()
D.items()
D | items | list
D | dictsort
range(3)
range(5, 0, -2)
range(4)[1:]
[1] * 2
2 * [1, none]
[1] * 0
[1] * -1
[1] * 'a'
[[]] * 2
'%s' % 'x'
'%s' % none
'%s' % nope
'%s-%d' % ('a', 3)
'%s' % (1, 2)
'%s %s' % 'a'
'a' % 1
'a' % []
'%5.2f|%-6s|%06d|%+d|% d|%x|%X|%o|%e|%g|%%' % (3.14159, 'ab', -42, 5, 7, 255, 255, 8, 12345.678, 0.00001)
'%(a)s %(b)r' % {'a': 1, 'b': 'x'}
'%(a)s' % {'b': 1}
'%*d|%.*f' % (5, 42, 2, 3.14159)
'%r %s' % ('a', [1, 'b'])
'%d' % 3.9
'%d' % '3'
'%c%c' % (65, 'B')
'%.2s|%10.3s|' % ('abc', 'abcdef')
'%i' % true
'%q' % 1
'%' % 1
'%s' | format('x')
'%s and %s' | format(1, none)
'%(x)s' | format(x=2)
'{} {}'.format(1, none)
'{0}{1}{0}'.format('a', 'b')
'{x} {y!r}'.format(x=1, y='q')
'{:>5}|{:<5}|{:^5}|{:*^7}|{:05d}|{:.2f}|{:,}|{:x}|{:#x}|{:b}|{:+}|{:e}|{:%}'.format('a', 'b', 'c', 'd', 42, 3.14159, 1234567, 255, 255, 5, 3, 12345.678, 0.25)
'{0[r]} {0[n]}'.format(L[0])
'{0[0]}'.format(W)
'{:{}}|'.format('a', 4)
'{{}} {}'.format(1)
'{} {}'.format(1)
'{'.format(1)
'}'.format(1)
'{x}'.format(y=1)
'{:d}'.format('a')
'{:s}'.format(1)
'{!x}'.format(1)
'{:.3}|{:g}|{:.1f}|{:10.4}|'.format(3.14159, 1e20, 2.25, 2.5)
'{:5}|{:<5}|{:5}'.format(1, 2, true)
'a' 'b' "c"
'\é\q\101\x41\u00e9\\'
[1, 2].append(3)
[1, 2].count(1)
[1, 2].copy()
D.pop('B')
D.update({})
'a'.__class__
D.__class__.__mro__
{'keys': 1}.keys is callable
{'keys': 1}['keys']
D.items is callable
W.upper is defined
'a'.upper is defined
'a.b'.partition('.')
'a.b.c'.rpartition('.')
'7'.zfill(3)
'-7'.zfill(4)
'ab'.ljust(4, '.') ~ 'ab'.rjust(4) ~ 'ab'.center(5, '*')
'a1'.isalnum()
'-'.join([1, 2])
'-'.join(W)
W | map('upper')  is iterable
W | map('upper') | length
(W | map('upper')) is sequence
(E | map('upper')) and 1
W | select('string') | first
W | reverse | first
W | unique | first
L | unique(attribute='q') | list | length
{nope: 1, D.nope: 2} | length
[[1], [1]] | unique | list
[3, 1] | sum
L | sum(attribute='n')
[[1], [2]] | sum(start=[])
L | groupby('r') | list
W | batch(3) | list
W | batch(3, 'z') | list
L | min(attribute='n')
'abcdefghij klm' | truncate(9)
'abcdefghij klm' | truncate(9, true)
'ab' | center(6)
[none, none] | sort
[none, 1] | sort
L | sort(attribute='q') | length
L | sort(attribute='r,n') | map(attribute='n') | list
W | join(none)
H | e | upper
('<' | e) + '<'
('<' | safe) + '<'
'<' | e is escaped
9223372036854775807 * 1
-7.5 // -2
7 % -2.5
2 ** -2
0 ** -1
1 if 0
(1 if 0) is defined
[1 if 0]
dict(a=1, **{'b': 2})
dict([(1, 2)])
namespace(a=1).a
namespace({'a': 1}).a
'a' if nope else 'b'
'x' | nofilter
x is nottest
'x' | nofilter if 0 else 1
loop
W[none]
W['a']
W['upper'] is defined
'abc'['upper'] is callable
'abc'[none]
'abc'[1.0]
'abc'[true]
Z[1:]
N[1.5:]
N[::0]
'{:_x}|{:_b}|{:#_x}|{:012_x}|{:#012_b}|{:-#010_X}|{:_o}'.format(1234567, 1234567, 1234567, 1234567, 5, 255, 123456)
'{:012,.1f}|{:010,}|{:011,}|{:09,}|{:+012,d}|{:012,}|{:013,.2f}|{:06,}|{:08,}'.format(1234.5, 1234567, 1234567, 123, 1234, -1234, -1234.567, 1234, 1234)
'{:=12,}|{:0=12,}|{:*=12,}|{:0>12,}|{:<012,}|{:>012}|{:^#10x}'.format(1234, 1234, 1234, 1234, 1234, 1234, 255)
'{:#x}|{:#06x}|{:#b}|{:#}|{:#d}|{:#X}|{:06c}'.format(255, 255, 5, 5, 5, 255, 65)
'{:05}|{:<05}|{:>05}|{:05}'.format('ab', 'ab', 'ab', 1.5)
'{:_g}|{:,e}|{:,%}|{:_f}|{:,}'.format(1234567.5, 1234567.5, 1234.5, 1234567.5, 0.5)
'%#06x|%#6x|%#o|%-#8x|%+06d|%06.2f|% 06d|%#05.3x|%06.3d' % (255, 255, 8, 255, 5, 1.5, 5, 5, 5)
'{:.3d}'.format(5)
'{:,.3d}'.format(5)
'{:.3}'.format(5)
'{:.3x}'.format(5)
'{:,x}'.format(5)
'{:,b}'.format(5)
'{:,c}'.format(65)
'{:,n}'.format(5)
'{:_n}'.format(5)
'{:_c}'.format(65)
'{:+c}'.format(65)
'{:#s}'.format('a')
'{:=5}'.format('a')
['²', '12', '١', '½', '一', '', '①5', '⁹', 'a', '𐩀'] | map('string') | map('length') | list
'²'.isdigit(), '²'.isdecimal(), '²'.isnumeric(), '½'.isdigit(), '①5'.isdigit(), '¹'.isdigit(), '³'.isdigit(), 'º'.isdigit(), '𐩀'.isdigit(), '⁹'.isdecimal()
(L | groupby('r'))[0].grouper, (L | groupby('r') | first).list | length
L | groupby('r') | map(attribute='grouper') | list
L | groupby('r') | map(attribute='list') | map('length') | list
'xyx'.strip('yx'), 'aéb'.strip('ébq'), 'aéb'.lstrip('aé'), 'aéb'.rstrip('b'), 'ab'.strip('')
T | wordcount, '' | wordcount, '_a b-c é1' | wordcount
{(1, ('a', 2)): 1, (1, ('a', 2.0)): 2, ((1, 'a'), 2): 3, (1, 'a', 2): 4, ('1', 'a', 2): 5, ((1,), 'a'): 6}
('a', ('b',)) in {('a', ('b',)): 1}, ('a', 'b') in {('a', ('b',)): 1}, (('a',), 'b') in {('a', ('b',)): 1}
(H | safe) and 1, ('' | safe) or 2, not ('' | safe)
L | sort(attribute='r,n') | map(attribute='n') | list
'éab'[1], 'éab'[-1], 'éab'[0], '日本'[1]
'abcdefghij klm' | truncate(8)
'abcdefghij klm' | truncate(8, true)
'abc defghij klmno' | truncate(8)
'abc defghij klmno' | truncate(8, true)
'abc defghij klmno' | truncate(8, false, '!')
'abc defghij klmno' | truncate(8, end='…')
'abc defghij klmno' | truncate(9, leeway=0)
'abc defghij klmno' | truncate(12, leeway=4)
'abc defghij klmno' | truncate(12, leeway=5)
'äbc dëfghij klmno' | truncate(9, true, leeway=0)
'abc defghij klmno' | truncate(3, leeway=0)
'abc defghij klmno' | truncate(2, leeway=0)
'abc defghij klmno' | truncate(3, leeway=-1)
'ab' | truncate(2)
'ab' | truncate(3)
'abc defghij klmno' | truncate(0, end='')
'abc defghij klmno' | truncate(4, end='', leeway=0)
'abc defghij klmno' | truncate(length=9, killwords=true, end='', leeway=0)
'abc defghij klmno' | truncate('9')
[1, 2, 3] | truncate
[1, 2, 3, 4] | truncate(3, leeway=0)
5 | truncate
(1, [2, 3])[1]
(1, 2, 3).grouper is defined
(1, 2).list is defined
L | groupby('r') | map(attribute=0) | list
(L | groupby('n'))[0].grouper
(L | groupby('n'))[0]['list'] | length
(L | groupby('n'))[0].other is defined
'a'.__class__ is defined
[].append is defined
[].append(1)
{}.update is defined
{'update': 3}.update is defined
{'update': 3}['update']
range(3)['x'] is defined
5[0] is defined
range(2, 9, 3)[1]
range(2, 9, 3)[-1]
range(5)[7] is defined
range(5)[-6] is defined
range(10)[2:8:3] | list
range(10)[::-2] | list
range(1, 10, 2)[1:3] | list
range(1, 10, 2)[3:1] | list
range(0)[:] | list
range(10)[2:8:3] | length
range(10)[2:8:3][1]
'héllo'[::-1]
'héllo'[1:-1]
'héllo'[-2:]
'héllo'[:-9]
'héllo'[-9:]
'héllo'[4:1:-1]
'héllo'[1:4:-1]
[1, 2, 3][9:0:-1]
[1, 2, 3][-9::-1]
[1, 2, 3][:0:-2]
(1, 2, 3)[1:]
(1, 2, 3)[::2]
[1, 2, 3][::9223372036854775807]
[1, 2, 3][1::9223372036854775807]
[1, 2, 3][::-9223372036854775807]
'abc'[::0]
[1, 2][true:]
'abc'[none:none]
missing[1:]
missing.a
'a' | center(width=9)
'a' | center(5, width=9)
'é' | center(4) ~ '|'
'a' | center ~ '|'
'abc' | center(2)
'a' | replace('a')
'a' | replace(old='a', new='b')
'aaa' | replace('a', 'b', 0)
'aaa' | replace('a', 'b', -1)
'aaa' | replace('', '-')
'aéa' | replace('', '-', 2)
'a' | replace('a', 1)
12321 | replace(2, 'x')
'a' | replace('a', 'b', old='c')
missing | default(boolean=true)
'' | default('x', boolean=true)
'' | default('x')
none | default('x')
none | default('x', true)
0 | d('x', true)
missing | d
missing | d(none)
missing | default(default_value='q')
missing | default(1, 2, 3)
'hello'.find('l', none, none)
'hello'.find('l', 3)
'hello'.find('l', 4)
'hello'.find('l', -2)
'hello'.find('l', -9)
'hello'.find('l', 0, 2)
'hello'.find('l', 0, 3)
'hello'.find('l', 0, -2)
'hello'.find('', 5)
'hello'.find('', 6)
'héllo'.find('l')
'héllo'.rfind('l')
'héllo'.rfind('l', 0, 3)
'hello'.count('l', 3)
'hello'.count('')
'hello'.count('', 2, 4)
'hello'.startswith('l', 2)
'hello'.startswith('l', 2, 2)
'hello'.startswith('', 6)
'hello'.endswith('l', 0, 3)
'hello'.endswith('l', 3, 3)
'hello'.endswith(('o', 'x'))
'hello'.startswith(('x', 'h'))
'hello'.startswith(['h'])
'x'.find('x', 'a')
'hello'.index('l')
'hello'.index('z')
{1: 'a', 1.0: 'b'}
{true: 1, 1: 2}
{(1, 2): 3}[(1, 2)]
{(1, 2): 3}[(1, 2.0)]
{(1, [2]): 2}
{{}: 2}
{1: 2} == {1.0: 2}
{1: 2} == {1: 2, 3: 4}
{1: 2} == {2: 2}
{1: 2} == {1: 3}
{1: [2, {3: 4}]} == {1: [2, {3: 4}]}
{1: [2, {3: 4}]} == {1: [2, {3: 5}]}
{'a': 1, 'b': 2} == {'b': 2, 'a': 1}
{9007199254740993: 1}[9007199254740992.0] is defined
{9007199254740992: 1}[9007199254740992.0] is defined
{1.5: 1}[1.5]
{1: 2}[missing] is defined
[1, 2] == [1, 2]
[1, 2] == (1, 2)
[1, 2] == [1, 2, 3]
[1, [2]] == [1, [2.0]]
3 > 2 > 1 == 1
1 == 1.0 == true
'a' < 'b' < 'B'
1 < 'a'
[1, 2] < [1, 3]
[1, 2] < [1]
(1, 2) < (1, 2, 3)
1 is foo
1 | foo
foo(1)
1 is divisibleby
1 is divisibleby(1, 2)
10 is divisibleby 5
10 is divisibleby 0
1 is odd(1)
2 is odd
-3 is odd
-3 is even
0 is even
2.0 is even
'a' is odd
true is odd
'a' is lower
'A' is lower
'Aé' is upper
'ÀÉ' is upper
'1' is upper
1 is sameas 1
true is sameas true
true is sameas 1
1 is sameas true
1 is eq 1.0
1 is gt 2
1 is ge 1
1 is le 0
1 is greaterthan 0
1 is lessthan 0
'a' is in 'abc'
'a' is in ['b']
1 is in {1: 2}
5 is iterable
missing is iterable
[] is mapping
[] is sequence
5 is sequence
range(3) is sequence
(1,) is sequence
1 is number
1.5 is number
'1' is number
1 is float
missing is none
missing is undefined
missing is defined
1 is string
'a' is filter
'upper' is filter
'odd' is test
'nope' is test
1 is escaped
'a' is escaped
dict(**{'a': 1})
dict(**4)
dict(a=1, **{'a': 2})
range(*[1, 4]) | list
range(*4) | list
range(1, 9, 3) | list
range(9, 1, -3) | list
range(1, 9, 0)
range(1.5)
range('a')
range()
range(1, 2, 3, 4)
range(1, 3)
range(0, 9, 2) | length
range(3) == range(0, 3)
'{}'.format(1)
'{} {}'.format(1, 'a')
'{0}{1}{0}'.format(1, 2)
'{a}'.format(a=1)
'{0}'.format()
'{1}'.format(1)
'{}{0}'.format(1)
'{0}{}'.format(1)
'{-1}'.format(1)
'{b}'.format(a=1)
'{:>5}|{:<5}|{:^5}|{:*^5}'.format(1, 2, 3, 4)
'{:>5}|{:<5}|{:^5}|{:é^6}'.format('a', 'b', 'c', 'd')
'{:c}'.format(97)
'{:c}'.format('a')
'{!r}'.format('a')
'{!s:>5}'.format('a')
'{!r:>5}'.format('é')
'{!a}'.format('é')
'{!x}'.format('a')
'{{}}'.format(1)
'{{{}}}'.format(1)
'{0[a]}'.format({'a': 1})
'{0.a}'.format({'a': 1})
'{0[1]}'.format([1, 2])
'{0[9]}'.format([1, 2])
'{:{}}|'.format(1, 5)
'{:{w}.{p}f}|'.format(1.2345, w=8, p=2)
'{:d}'.format(1.5)
'{:f}'.format(1)
'{:.2f}'.format(1.005)
'{:.0f}'.format(2.5)
'{:,}'.format(1234567)
'{:,}'.format(123)
'{:,.2f}'.format(1234567.891)
'{:_}'.format(1234567)
'{:_x}'.format(1234567)
'{:08,}'.format(1234)
'{:010,}'.format(1234567)
'{:09,}'.format(1234567)
'{:011,.1f}'.format(-12345.67)
'{:+}{:-}{: }'.format(1, 2, 3)
'{:+}{:-}{: }'.format(-1, -2, -3)
'{:+.1f}'.format(0.0)
'{:#x} {:#o} {:#b} {:#X}'.format(255, 8, 5, 255)
'{:#08x}'.format(255)
'{:x}'.format(-255)
'{:.3}'.format('abcdef')
'{:.3}'.format(3.14159)
'{:.3}'.format(31415.9)
'{:.3}'.format(3)
'{:e} {:E} {:.1e}'.format(12345.678, 0.00012, 1)
'{:g} {:g} {:g} {:G}'.format(1e20, 0.0001, 123456789, 1e-10)
'{:g}'.format(100000)
'{:g}'.format(1000000)
'{:%} {:.0%} {:.1%}'.format(0.25, 0.5, 1)
'{:n}'.format(1234)
'{:05}'.format(-3)
'{:05}'.format('a')
'{:=5}'.format(-3)
'{:x=5}'.format(-3)
'{:<05}'.format(3)
'{:s}'.format('a')
'{:5s}|'.format('a')
'{:,}'.format('a')
'{:+}'.format('a')
'{:q}'.format(1)
'{:10}|'.format(1.5)
'{:10}|'.format(true)
'{:}|'.format(none)
'{:5}|'.format(none)
'{:5}|'.format([1])
'{}'.format([1, 'a'])
'{:.2f}'.format('a')
'%s' % 1
'%s' % (1,)
'%s %s' % (1,)
'%s' % [1]
'%s' % {'a': 1}
'%d%%' % 5
'%d' % 5.9
'%d' % -5.9
'%d' % 'a'
'%i %u' % (1, 2)
'%c' % 'a'
'%c' % 'é'
'%c' % 'ab'
'%c' % 97
'%5.2f|%-7.1f|%+d|% d|%05d' % (1.234, 5.67, 3, 4, -5)
'%5s|%-5s|%.2s' % ('a', 'b', 'cde')
'%x %X %o %#x %#o' % (255, 255, 8, 255, 8)
'%x' % 1.5
'%e %E %g %G' % (1234.5, 0.001, 1e-7, 1e17)
'%r %a' % ('é', 'é')
'%(a)s %(b)d' % {'a': 1, 'b': 2}
'%(a)s' % 1
'%*d' % (5, 3)
'%-*d|' % (5, 3)
'%.*f' % (2, 3.14159)
'%z' % 1
'%s' | format(1)
'%s %s' | format(1, 2)
'%(a)s' | format(a=1)
'%s' | format(1, a=2)
'%s' | format
'%5s|' | format('é')
'no' % ()
'no' % 1
'no' % {'a': 1}
-3 | abs
3 | abs
-2.5 | abs
'a' | abs
true | abs
none | abs
'a' | attr('upper') is defined
{'a': 1} | attr('a') is defined
{'a': 1} | attr('keys') is defined
K | attr('x') is defined
('a' | attr('upper'))()
('abc' | reverse)
([1, 2, 3] | reverse) | list
(range(3) | reverse) | list
'' | reverse
'héé' | reverse
{'a': 1, 'b': 2} | reverse | list
5 | reverse
'' | first is defined
'éa' | first
'aé' | last
{'a': 1, 'b': 2} | first
{'a': 1, 'b': 2} | last
(W | map('upper')) | last
(W | map('upper')) | first
5 | first
[1, 2, 3, 4, 5] | batch(2) | list
[1, 2, 3, 4, 5] | batch(2, 'x') | list
[1, 2, 3, 4] | batch(2, 'x') | list
[1, 2, 3] | batch(5, 0) | list
[] | batch(2) | list
[1] | batch(1) | list
[1, 2, 3] | batch(linecount=2, fill_with='q') | list
2.675 | round(2)
1250 | round(-2)
1350 | round(-2)
-1250 | round(-2)
15 | round(-1)
5 | round(-1)
25 | round(-1)
2.5 | round(method='floor')
-2.5 | round(method='floor')
-2.5 | round(method='ceil')
2.11 | round(1, 'ceil')
2.19 | round(1, 'floor')
5 | round(0, 'floor')
5 | round(1, 'nope')
'a' | round
1e20 | round
2.5 | round(precision=0)
'a_b c-d é2 ½ ٣' | wordcount
'' | wordcount
'a' | wordcount
5 | wordcount
'3' | int
'3.9' | int
'-3.9' | int
' 3 ' | int
'3_000' | int
'3__0' | int
'_3' | int
'3_' | int
'+3' | int
'+-3' | int
'abc' | int
'abc' | int(7)
'abc' | int('q')
'0x1f' | int(base=16)
'1f' | int(0, 16)
'0b11' | int(0, 2)
'0o17' | int(0, 8)
'0x1f' | int
'z' | int(0, 36)
[] | int
true | int
'1e3' | int
'nan' | int
'inf' | int(5)
missing | int
'3' | float
'3.5e2' | float
'nan' | float
'-inf' | float
'abc' | float
'abc' | float(1)
'1_0' | float
'0x1' | float
none | float
true | float
5 | float
' 2.5\n' | float
missing | float
W | sort(attribute=none)
[3, 1, 2] | sort(true)
[[2, 'b'], [1, 'a'], [2, 'a']] | sort
[[2, 'b'], [1, 'a'], [2, 'a']] | sort(attribute=0)
[[2, 'b'], [1, 'a'], [2, 'a']] | sort(attribute='1')
[[2, 'b'], [1, 'a'], [2, 'a']] | sort(attribute='1,0')
[[2, 'b'], [1, 'a'], [2, 'a']] | sort(true, attribute='0,1')
[1, 'a'] | sort
[1, 1.0, true] | sort
['é', 'e', 'z', 'É'] | sort
['B', 'a', 'C'] | sort(case_sensitive=true, reverse=true)
D | sort
D | dictsort(true)
D | dictsort(by='value')
D | dictsort(by='value', reverse=true)
D | dictsort(false, 'key', true)
D | dictsort(by='key')
D | dictsort(by='other')
W | dictsort
[] | max is defined
[3, 1, 2] | max
[3, 1, 2] | min
['b', 'A', 'a'] | max
['b', 'A', 'a'] | min
['b', 'A', 'B'] | min(true)
['b', 'A', 'B'] | max(case_sensitive=true)
L | max(attribute='n')
[1, 'a'] | max
[1, 2] | sum
[1, 2] | sum(start=10)
L | sum('n', 10)
[] | sum
[] | sum(start='a')
['a'] | sum
['a', 'b'] | sum(start='')
W | map | list
5 | map('upper') | list
[] | map | list
L | map(attribute='n', default=0) | list
L | map(attribute='q', default=0) | list
L | map(attribute='q') | list | length
[{'a': {'b': 1}}, {'a': {}}, {}] | map(attribute='a.b', default='z') | list
[{'a': {'b': 1}}] | map(attribute='a.b') | list
[[1, 2], [3, 4]] | map(attribute=1) | list
[[1, 2], [3, 4]] | map(attribute='1') | list
[[1, 2], [3, 4]] | map('first') | list
[[1, 2], [3, 4]] | map('join', '-') | list
[1, 2] | map('nope') | list
[1, 2] | map(1) | list
L | map('upper', attribute='n') | list
L | map(attribute='n', other=1) | list
L | selectattr | list
L | selectattr() | list
L | selectattr('n', 'nope') | list
L | selectattr('n', 1) | list
N | select('nope') | list
none | select | list
5 | select | list
N | reject | list
N | select('divisibleby', 3) | list
L | rejectattr('n') | list | length
L | selectattr('q.z') | list
[1, 2, 1.0, 'a', 'A'] | unique | list
L | unique(attribute='r') | map(attribute='n') | list
['a', 'A'] | unique(case_sensitive=true) | list
'abA' | unique | list
{'a': 1} | list
5 | list
missing | items | list
W | items | list
'é' | count
5 | length
range(3) | length
(W | map('upper')) | length
W | join
W | join('')
W | join(1)
[1, none, true, 2.5] | join(',')
D | join(',')
5 | join
L | join(',', 'n')
L | join(',', 'q')
['<', '>' | safe] | join(',')
'a\nb\n\nc' | indent
'a\nb\n\nc' | indent(2)
'a\nb\n\nc' | indent(2, true)
'a\nb\n\nc' | indent(2, first=true, blank=true)
'a\nb\n\nc' | indent('> ')
'a\nb\n\nc' | indent(width='> ', blank=true)
'\na' | indent(2, true)
'\na' | indent(2, true, true)
5 | indent
'a' | indent(-1)
'a\nb' | indent(0)
'  a ' | trim ~ '|'
'xxaxx' | trim('x')
'xyaxy' | trim(chars='yx')
5 | trim
'a' | upper
'ŉ' | upper
'İ' | lower
'ΑΣ' | lower
'ΑΣ Σ ΣΑ' | lower
'ǆ' | title
'it\'s a dOG-house' | title
'hELLO wORLD' | capitalize
'éLAN' | capitalize
'ǆ' | capitalize
'fﬁ' | capitalize
5 | upper
'Ꭰꭰ' | lower
'ᏸᏽ' | lower
'ᏸᏽ' | upper
'ꭰꮿ' | upper
'ꭰꮿ'.swapcase()
'ᏸ'.swapcase()
'aB1é'.swapcase()
'aB cD'.title()
'1a 2b'.title()
'ab'.capitalize()
'İ'.lower() | length
'ΑΣ'.lower()
'ß'.upper()
'ß'.casefold()
1 // 0
1 / 0
1 % 0
7 // 2
7 % -3
-7.5 % 2
2 ** 3
2 ** -1
2 ** 10 ** 0
0 ** 0
1.0 ** 5
'a' * -1
'a' * 0
2 * [1]
(1,) * 2
(1,) + (2,)
'a' ~ 1 ~ none ~ true
1 + true
1 + 1.5
none + 1
-'a'
+5
-true
not 1
not ''
1 and 0
'' or 'x'
0 and missing
1 or missing
'' in 'abc'
1 in 'abc'
'a' in {'a': 1}
1 not in [2]
2 in range(3)
3 in range(3)
1.5 in range(3)
'a' if false
'a' if true else 'b'
'a' if false else 'b'
('a' if false) is defined
1 == '1'
none == 0
missing == missing
missing == none
1e300 * 1e300
1e15
123456789012345680.0
1e-5
0.0001
0x1f
0b101
0o17
0_0
1.5e-3
1.
.5
'\x41\u00e9\n\t\\'
'\q'
"a'b"
'a"b'
'a' 'b'
['a\'b', "a\"b", 'a\n', 'é', '\x00', '\x7f', '\u200b']
[1, 'a', none, true, 1.5, [2], (3,), {4: 5}, ()]
{}
[[]]
{'a': {'b': [1]}} | tojson
[1, 1.0, 1e20, none, true, 'é<>&'] | tojson
{'b': 1, 'a': 2} | tojson(sort_keys=true)
{'b': 1, 'a': [1, {}, []]} | tojson(indent=2)
[] | tojson(indent=2)
{} | tojson(indent=2)
{1: 2, none: 3, true: 4, 1.5: 5} | tojson
{(1, 2): 3} | tojson
'é' | tojson(ensure_ascii=true)
'😀' | tojson(ensure_ascii=true)
[1, 2] | tojson(separators=(',', ':'))
{'a': [1]} | tojson(separators=(' , ', ' : '))
[1, 2] | tojson(indent='--')
range(3) | tojson
missing | tojson
'a,b,,c'.split(',')
'a,b,,c'.split(',', 1)
' a  b '.split()
' a  b c '.split(none, 1)
'abc'.split('')
'a,b,c'.rsplit(',', 1)
' a b  c '.rsplit(none, 1)
'a\nb\r\nc'.splitlines()
'a\nb\r\nc\n'.splitlines(true)
'a\x0bb\u2028c'.splitlines()
'abc'.partition('b')
'abc'.partition('x')
'abcb'.rpartition('b')
'abc'.rpartition('x')
','.join(['a', 'b'])
','.join([1])
','.join('abc')
'abc'.zfill(5)
'-5'.zfill(5)
'+5'.zfill(2)
'a'.ljust(3) ~ '|'
'a'.rjust(3, '*')
'a'.center(4, '*')
'ab'.center(5, '*')
'a'.ljust(3, 'xy')
'  a '.strip() ~ '|'
'  a '.lstrip() ~ '|'
'  a '.rstrip() ~ '|'
'xax'.strip('x')
'xyaxy'.lstrip('yx')
'abc'.removeprefix('ab')
'abc'.removesuffix('bc')
'abc'.removeprefix('x')
'abc'.isdigit()
'12'.isdigit()
'²'.isdigit()
'²'.isdecimal()
'½'.isnumeric()
''.isdigit()
'ab'.isalpha()
'é'.isalpha()
'a_'.isalnum()
' \n'.isspace()
''.isspace()
'AB'.isupper()
'ab1'.islower()
'é'.isascii()
'abc'.replace('b', 'x', 1)
'abc'.replace('b')
{'a': 1}.get('a')
{'a': 1}.get('b')
{'a': 1}.get('b', 2)
{'a': 1}.keys() | list
{'a': 1}.values() | list
{'a': 1}.items() | list
{'a': 1}.items()
{'a': 1}.keys()
{'a': 1}.copy()
{'a': 1}.pop('a')
[1, 2, 1].count(1)
[1, 2, 1].index(2)
[1, 2, 1].index(5)
(1, 2).count(1)
(1, 2).index(2)
namespace(a=1).b is defined
'aNone' | replace(none, 'x')
'a' | replace('a', none)
'a' | replace('a', missing)
{1152921504606846976: 1}[1152921504606846976.0] is defined
{1152921504606846977: 1}[1152921504606846976.0] is defined
'1e999' | int(3)
'-inf' | int(3)
'%a' % 'é😀ā\''
'{!a}'.format(['é'])
'{!a:>8}'.format('é')
'{0:{}}'.format(1, 5)
'{:{1}}'.format(1, 5)
'{a}{}{}'.format(1, 5, a=3)
'{a}{0}'.format(1, 5, a=3)
'{0}{a}{1}'.format(1, 5, a=3)
['a'] | sum(start='x' | safe)
[[1], [2]] | sum(start=[0])
'a\nb' | indent(-3)
'a'.replace('a', 1)
"""

# In both kinds of templates.
STATEMENTS = r"""
{% for x in W %}{{ loop.index }}{{ x }}{{ loop.previtem if not loop.first }}{{ loop.nextitem if not loop.last }}{% endfor %}
{% for x in W %}{{ loop.length }}{{ loop.revindex0 }}{{ loop.depth }}{{ loop.depth0 }}{% endfor %}
{% for k, v in D.items() %}{{ k }}={{ v }};{% endfor %}
{% for k in D %}{{ k }}{% endfor %}
{% for x in E %}a{% else %}none{% endfor %}
{% for x in W if x > 'a' %}{{ loop.index }}{{ x }}{{ loop.last }}{% else %}z{% endfor %}
{% for x in N %}{% for y in W %}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}
{% set x = 1 %}{% for i in N %}{% set x = 2 %}{% endfor %}{{ x }}
{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{{ x }}
{% set ns = namespace(x=1) %}{% for i in N %}{% set ns.x = ns.x + 1 %}{% endfor %}{{ ns.x }}
{% macro f(a, b='q') %}{{ a }}{{ b }}{% endmacro %}{{ f(1) }}{{ f(1, 2) }}{{ f(b=3, a=4) }}
{% macro f(x) %}{% set y = x %}{{ y }}{% endmacro %}{{ f(5) }}{{ y is defined }}
{%- set x = 1 -%}  a  {%- if x -%}  b  {%- endif %}  c
a {{- ' b ' -}} c
{% raw %}{{ x }}{% endraw %}
{# c #}a{#- d -#} b
{% if W and N %}y{% elif E %}n{% else %}z{% endif %}
{% if 'a' in W and not E %}y{% endif %}
{% if Z is none %}n{% endif %}{% if Z is not none %}m{% endif %}
{% for i in range(3) %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% endfor %}
{% for i in range(3) %}{% if i == 1 %}{% break %}{% endif %}{{ i }}{% endfor %}
{% set x %}  a{{ 1 }} {% endset %}[{{ x }}]{{ x | length }}
{% for a, b in [[1, 2], [3, 4]] %}{{ a }}{{ b }}{% endfor %}
{% set x = W | map('lower') | list %}{{ x }}
{% set x = {'a': 1} %}{% for k, v in x | items %}{{ k }}{{ v }}{% endfor %}
{% for m in L %}{{ m.r }}{{ m['n'] }}{% if not loop.last %},{% endif %}{% endfor %}
{% for m in L[1:] %}{{ m.n }}{% endfor %}
{% for m in L | reverse %}{{ m.n }}{% endfor %}
{% for m in L[::-1] %}{{ loop.index0 }}{{ m.n }}{% endfor %}
{{ 'a' if W else 'b' }}{{ 'c' if E }}{{ 'd' }}
{{ {'a': 1}['a'] }}{{ {'a': {'b': 2}}.a.b }}{{ [1, 2][0] }}
{% set x = 'a' %}{% set x = x + 'b' %}{{ x }}
{% if not loop is defined %}q{% endif %}
{% for i in [1] %}{{ i }}{% endfor %}{{ i is defined }}
{% for x in none %}a{% endfor %}
{% for x in nope %}a{% else %}e{% endfor %}
{% for x in 3 %}a{% endfor %}
{% for a, b in [[1, 2, 3]] %}a{% endfor %}
{% for a, b in ['xy', (1, none)] %}{{ a }}{{ b }},{% endfor %}
{% for (a, b), c in [((1, 2), 3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}
{% for x in W %}{{ loop.previtem }}{{ loop.nextitem is defined }}{{ loop.cycle('p', 'q') }}{{ loop.changed(x | lower) }}{% endfor %}
{% for x in W %}{{ loop.nope }}{{ loop.nope is defined }}{% endfor %}
{% for x in W if loop %}{{ x }}{% endfor %}
{% for x in W %}{% set y = x %}{{ y }}{% endfor %}{{ y is defined }}
{% for x in W %}{% if y is defined %}!{% endif %}{% set y = x %}{% endfor %}
{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set t = 1, %}{{ t }}
{% set a = none %}{{ a }}{{ a is none }}{{ a ~ '' }}
{% set x | upper %}a{{ 'b' }}{% endset %}{{ x }}
{% set x %}{% set y = 1 %}{% endset %}{{ y is defined }}
{% with a = 1, b = i %}{{ a }}{{ b is defined }}{% endwith %}{{ a is defined }}
{% filter upper | replace('A', 'x') %}ab{{ 'c' }}{% endfilter %}
{% macro f(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ f(1) }}
{% macro f(a) %}{{ a }}{% endmacro %}[{{ f() }}]
{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, 2) }}
{% macro f(a) %}{{ a }}{% endmacro %}{{ f(b=2) }}
{% macro f(a) %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, 2, 3, x=4) }}
{% macro f() %}{{ y }}{% endmacro %}{% set y = 1 %}{{ f() }}
{% macro f() %}{{ x }}{% endmacro %}{% for x in W %}{{ f() }}{% endfor %}|
{% macro f() %}[{{ caller() }}]{% endmacro %}{% call f() %}a{% endcall %}
{% macro f() %}[{{ caller(1) }}]{% endmacro %}{% call(x) f() %}a{{ x }}{% endcall %}
{% macro f() %}{% endmacro %}{% call f() %}a{% endcall %}
{% macro f(x) %}{% if x %}{{ x }}{{ f(x - 1) }}{% endif %}{% endmacro %}{{ f(3) }}{{ f }}
{% set g = W | map('upper') %}{% for x in g %}{{ x }}{% endfor %}{% for x in g %}{{ x }}{% endfor %}|{% if g %}t{% endif %}
{% if nope.x is defined %}a{% endif %}
{% if Z.x is defined %}a{% else %}b{% endif %}
{% if nope %}a{% elif none %}b{% else %}c{% endif %}
{% if 0 %}{{ 'x' | nofilter }}{% endif %}ok
{% if 0 %}{% for x in W %}{{ 'x' | nofilter }}{% endfor %}{% endif %}ok
{% break %}
{% for x in W %}{% macro f() %}{% break %}{% endmacro %}{% endfor %}
{% set ns = namespace(a=none) %}{{ ns.a }}{{ ns.b }}{{ ns['a'] is none }}{% set ns.b = 1, 2 %}{{ ns.b }}
{% set ns = {'a': 1} %}{% set ns.a = 2 %}
{{ namespace(a=1) }}
{{ 1, 2 }}{{ 'a', }}
{% if 1, %}t{% endif %}
{% for x in 1, 2, none %}{{ x }}{% endfor %}
{%- for x in W -%} {{ x }} {%- endfor -%}
{# a #}{#- b -#}{#+ c +#}{#-#}d
{{+ 1 }}{{- 2 -}} 3
{{ 1 +}}
{{ }}
{% %}
{% if %}{% endif %}
{% raw %}
a {% raw %} b
a{% raw %} {{ x }} {%- endraw %} b
a {%- raw -%} b {%- endraw -%} c
{{ '}}' }}{{ {'a': {}}.a }}{{ "%}" }}
{{ 'a' if W is defined and W is not none and W | length > 1 < 9 else 'b' }}
{% set ns = namespace(found=false) %}{% for m in L %}{% if m.r == 'A' %}{% set ns.found = true %}{% endif %}{% endfor %}{{ ns.found }}
{{ caller is defined }}
{% if 1 %}{% set q = 5 %}{% endif %}{{ q }}
{% for m in L %}{% set last = m.n %}{% endfor %}{{ last is defined }}
{{ '\x41\xe9' }}{{ '\u00e9' }}{{ '\'' }}{{ "\"" }}{{ '\\n' }}{{ '\a\b\f\v' }}{{ '\101\0' }}{{ '\q' }}{{ '\U0001F600' }}
{{ '\\' }}|{{ '\\\\' }}|{{ 'a\\' ~ 'b' }}|{{ "a\\" ~ "b" }}|{{ '\\\'' }}|{{ 'é\\' }}
{{ 'a\\b\\' | replace('\\', '/') }}{{ ['\\', "\\"] }}{{ {'\\': {'x': '\\'}} }}{{ {'a': {'b': '\\'}}}}
{% set x = '\\' %}{{ x }}{% if x == '\\' %}y{% endif %}{{ '}}\\' }}{{ '%}\\' }}
it's {{ '\\' }} it's \\ {{ "'\\" }} { ' {# it's '\\ #} '
{% raw %}{{ '\\' }} it's{% endraw %}{{ '\\' }}{% raw %} '\q' {% endraw %}{{ '\q' }}
{{ 'x\ny\tz\r' }}{{ '{% x %}' }}{{ '}}' }}{{ '{{' }}{{ '#}' }}
{{ 0 == false }}{{ 1 == true }}{{ true != 1 }}{{ 2 == true }}{{ 1.0 == true }}{{ '1' == 1 }}{{ none == false }}{{ [1] == [1] }}{{ {} == {} }}{{ 'a' != 'a' }}
{{ 1 + 2 * 3 - 4 / 2 }}{{ -2 * -3 }}{{ 2 - -3 }}{{ 7 // 2 * 2 + 7 % 2 }}{{ 2 ** 2 * 3 }}{{ 10 - 2 - 3 }}{{ 100 / 10 / 2 }}{{ 'a' ~ 'b' | upper }}{{ 3 | string + 'x' }}
{{ 1 == 1 and 2 == 2 or 3 == 4 }}{{ not 1 is even }}{{ not 'a' in 'b' }}{{ 1 ~ 2 if true else 3 }}{{ 'a' if true and false or true else 'b' }}{{ W | length == 4 }}{{ W[W | length - 1] }}
{{ 1234 | round(-1) }}{{ 25.0 | round(-1) }}{{ 35 | round(-1) }}{{ {1 == 2: 3 == 3} | length }}{{ ('a' * 100000) | replace('a', 'b' * 100, 0) | length }}
{{ '\xg' }}
{{ '\u12' }}
{% for x in 'ab' %}{% continue %}{% else %}e{% endfor %}
{% for x in 'ab' %}{% break %}{% else %}e{% endfor %}
{% for x in 'ab' %}{% if loop.first %}{% continue %}{% endif %}{% break %}{% else %}e{% endfor %}
{% for x in 'ab' %}{% if loop.first %}{% continue %}{% endif %}{% else %}e{% endfor %}
{% for x in 'ab' %}{% if not loop.first %}{% break %}{% endif %}{% else %}e{% endfor %}
{% for x in 'ab' if x == 'b' %}{{ x }}{% continue %}{% else %}e{% endfor %}
{% for x in 'ab' %}{{ x }}{% for y in 'c' %}{% continue %}{% endfor %}{% else %}e{% endfor %}
{% set g = [1, 2, 3] | select('odd') %}{{ 1 in g }}{{ g | list }}
{% set g = [1, 2, 3] | reverse %}{{ 2 not in g }}{{ g | list }}{{ 1 in g }}
{% set g = [1, 2, 3] | reverse %}{{ 9 in g }}{{ g | list }}
{% set y = 7 %}{% macro a(x=y, y=1) %}{{ x }}{{ y }}{% endmacro %}{{ a(y=2) }}
{% set y = 7 %}{% macro a(x=y, y=1) %}{{ x is defined }}{{ y }}{% endmacro %}{{ a() }}
{% set x = 5 %}{% macro a(x=x) %}{{ x is defined }}{% endmacro %}{{ a() }}{{ a(3) }}
{% set x = 5 %}{% macro a(x=x+1) %}{{ x }}{% endmacro %}{{ a() }}
{% macro a(x, y=x ~ '!', z=y) %}{{ y }}{{ z }}{% endmacro %}{{ a('q') }}{{ a('q', z=1) }}
{% macro m(a, b=1) %}{{ caller() }}{{ kwargs }}{{ varargs }}{% endmacro %}{{ m.name }}{{ m.arguments }}{{ m.catch_kwargs }}{{ m.catch_varargs }}{{ m.caller }}{{ m.zz is defined }}
{% macro m() %}{% endmacro %}{{ m.name }}{{ m.arguments }}{{ m.catch_kwargs }}{{ m.catch_varargs }}{{ m.caller }}
{% macro m() %}{{ caller.name }}{{ caller.arguments }}{% endmacro %}{% call(q) m() %}{% endcall %}
{% set x = 1 %}{% macro m() %}{{ x }}{% endmacro %}{% set x = 2 %}{{ m() }}
{% set x = 1 %}{% with x = 2, y = x %}{{ x }}{{ y }}{% set x = 3 %}{{ x }}{% endwith %}{{ x }}
{% macro m(a) %}{{ caller() }}{% endmacro %}{% set v = 1 %}{% call m(5) %}{{ v }}{% set v = 2 %}{{ v }}{% endcall %}{{ v }}
{% for i in [1, 2] %}{% macro z() %}{{ i }}{% endmacro %}{{ z() }}{% endfor %}{{ z is defined }}
{% for x in [1, 2, 3] | map('string') %}{{ loop.index }}{{ loop.last }}{{ loop.revindex }}{{ loop.length }}{% endfor %}
"""

# In text templates: a chat template does not tell None from what is undefined.
TEXTS = r"""
{% for k, v in D | dictsort %}{{ k }}{{ v }}{% endfor %}
{% for k, v in D | dictsort(true) %}{{ k }}{{ v }}{% endfor %}
{% for k, v in D | dictsort(by='value') %}{{ k }}{{ v }}{% endfor %}
{% for k, v in D | dictsort(reverse=true) %}{{ k }}{{ v }}{% endfor %}
{% for k, v in D | dictsort(false, 'value', true) %}{{ k }}{{ v }}{% endfor %}
{% for k, v in {'b': 'x', 'a': 'X'} | dictsort(by='value') %}{{ k }}{% endfor %}
{{ D | dictsort(by='other') }}
{{ {'a': 1, 'b': 'x'} | dictsort(by='value') }}
{{ K | map(attribute='y') is defined }}
{{ [{'a': {'b': 1}}, {'a': {'b': 2}}] | join('-', attribute='a.b') }}
{{ [[1, 2], [3, 4]] | join('-', attribute=1) }}
{{ [[1, 2], [3, 2]] | unique(attribute='1') | list }}
{{ {true: 1, none: 2, 1.5: 3, 7: 4} | tojson }}
{{ '\\u2028' | tojson }}
{{ -3 is odd }}{{ -2 is even }}{{ 'b' is gt 'a' }}{{ '12' is lower }}{{ 'A1' is upper }}{{ '' is lower }}
{{ 5 | round }}{{ 1250 | round(-2) }}{{ 0.5 | round }}{{ 1.5 | round }}{{ 2.675 | round(2) }}{{ 7 | round(1, 'floor') }}
{{ 2.5 | round(0, 'other') }}
{{ 3 ** 39 }} {{ 2 ** 62 }} {{ 0 ** 0 }} {{ 1 ** 99 }} {{ (-1) ** 5 }}
{{ dict(z=1, a=dict(y=2, b=3), m='x' ~ 1) }}
{% macro f(a, b='q') %}{{ a }}{{ b }}{% endmacro %}{{ f(1) }}{{ f(1, 2) }}{{ f(b=3, a=4) }}
{{ [] < [1] }}{{ [1, 'a'] < [1, 'b'] }}{{ [2] > [1, 5] }}{{ true < 2 }}{{ 1.5 <= true }}
{{ (1 < 2) == true }}{{ 1 < 2 and 2 < 3 }}{{ [1 < 2, 3 > 4] }}{{ 'a' if 1 == 1 else 2 == 3 }}
{{ Z | default('d') }}{{ nope | default }}|{{ {} | default('e', true) }}{{ nope | default(none) }}
{{ '__a__ b-c 1,2' | wordcount }}
{{ 'a' * true }}
{{ [] | max }}
{{ [] | first }}
"""

# In chat templates, separated by lines of dashes.
CHATS = r"""
{{ tools is defined }}{{ tools is none }}{{ documents is none }}
----
{% if tools %}a{% else %}b{% endif %}{% if not tools %}c{% endif %}{% if tools is not none %}d{% endif %}
----
{% if not tools is defined %}{% set tools = none %}{% endif %}{{ tools is none }}
----
{{ messages[0].nope is defined }}{{ messages[0].nope }}|{{ messages[0]['nope'] }}
----
{{ messages[0].n is defined }}{{ messages[0].n is none }}{{ messages[0].n == none }}{{ messages[0]['n'] is defined }}{{ 'n' in messages[0] }}
----
{% if messages[0].n %}a{% endif %}{% if messages[0].e %}b{% endif %}{% if messages[0].d %}c{% endif %}{% if messages[0].d2 %}d{% endif %}
----
{% for k in messages[0].d2 %}{{ k }}{% endfor %}{% for k, v in messages[0].d2.items() %}{{ k }}{{ v }}{% endfor %}
----
{% macro f(a, b) %}[{{ b is defined }}]{% endmacro %}{{ f(1) }}{{ f(1, 2) }}
----
{% set m = messages | selectattr('role', 'equalto', 'zzz') | list %}{{ m | length }}{{ (m | first) is defined }}
----
{% set m = messages | selectattr('role', 'equalto', 'user') | first %}{{ m.content }}
----
{% set x = none %}{{ x is defined }}{{ x is none }}
----
{% set ns = namespace(a=none) %}{{ ns.a is defined }}{{ ns.b is defined }}{% if ns.b %}q{% endif %}
----
{% for m in messages %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }}{% if loop.previtem is defined and loop.previtem.role == 'user' %}p{% endif %}{% endfor %}
----
{{ messages[5] is defined }}{{ messages[-1].role }}{{ messages[0] is defined }}{{ messages[-9] is defined }}
----
{{ messages | length }}{{ messages | map(attribute='role') | join(',') }}
----
{% if messages[0].content is string %}s{% else %}{% for c in messages[0].content %}{{ c.text if c.type == 'text' }}{% endfor %}{% endif %}
----
{% for m in messages[1:] %}{{ m.role }}{% if loop.last and m.role == 'user' %}!{% endif %}{% endfor %}
----
{{ messages[0]['content'] | trim }}{{ messages[0].content.strip() }}{{ messages[0].content[:2] }}{{ messages[0].content[-1] }}
----
{{ messages | tojson }}
----
{{ messages[0] | tojson(indent=4) }}
----
{{ bos_token }}{{ unk_token is defined }}
----
{% if (messages | length) % 2 == 0 %}e{% else %}o{% endif %}{% if messages | length > 1 %}m{% endif %}
----
{% if loop is defined %}x{% endif %}{% if messages[0].role != 'system' and messages[0].role == 'user' %}k{% endif %}
----
{{ messages[0].content.split('l')[-1].lstrip('\n') }}{{ 'x' in messages[0].content }}{{ messages[0].get('q', 'd') }}
----
{% if messages[0].role == 'user' and not (messages[0].n is defined and messages[0].n is not none) %}y{% endif %}
----
{{ '' if messages[0].n is none else messages[0].n }}|{{ messages[0].content if messages[0].content is not none else '' }}
----
{% set content = messages[0].content if messages[0].content is string else '' %}{{ content }}
----
{% set a = [] %}{% set a = a + [1] %}{% set a = a + ['x'] %}{{ a | length }}{{ a | join('+') }}
----
{{- messages[0].role }}
----
{{ messages[1].t is sequence }}{{ messages[1].t is iterable }}{{ messages[1].t is mapping }}{{ messages[0].content is sequence }}{{ messages[0].content is iterable }}
----
{{ messages[1].t[0].function.arguments | tojson }}{{ messages[1].t[0].function.name }}
----
{% for tc in messages[1].t %}{%- set f = tc.function %}{{ f.name }}{% for k, v in f.arguments.items() %}{{ k }}={{ v }}{% if not loop.last %},{% endif %}{% endfor %}{% endfor %}
----
{{ messages[1].t[0].function.arguments.x | string }}{{ 5 | string | length }}{{ messages[0].f }}{{ messages[0].b }}{{ messages[0].i }}
----
{% if messages[0].i > 1 and messages[0].f < 3 and messages[0].b %}ok{% endif %}{{ messages[0].i == 3.0 }}
----
{% for m in messages %}{{ m.role }}: {{ m.content }}{% if m.t %}{{ m.t }}{% endif %};{% endfor %}
----
{% for m in messages %}{{ m.role + ': ' + m.content }}{% endfor %}
----
{% for m in messages %}{{ m.role ~ ': ' ~ m.content ~ m.nope }}{% endfor %}
----
{% for m in messages %}{{ '[' + m['content'] | default('', true) + ']' }}{% endfor %}
----
{% for m in messages %}{{ '[' + m['content'] | default('') + ']' }}{% endfor %}
----
{% for m in messages %}{{ m.content | trim }}{{ m.nope | trim }}|{% endfor %}
----
{% for m in messages %}{{ m['t'][0]['function']['name'] }}{% endfor %}
----
{% for m in messages %}{% if m.t is defined and m.t is not none and m.t %}{% for c in m.t %}{{ c.function.arguments | tojson }}{{ c.id }}{{ c['id'] is none }}{% endfor %}{% endif %}{% endfor %}
----
{% for m in messages %}{% for c in m.t %}{{ c.function.name }}{% endfor %}{% endfor %}
----
{% for m in messages %}{% for c in m.content %}{{ c }}{% endfor %}{% endfor %}
----
{% for m in messages %}{% if m.content is string %}{{ m.content }}{% elif m.content is iterable %}{% for p in m.content %}{{ p.text }}{% endfor %}{% elif m.content is none %}-{% endif %}{% endfor %}
----
{% if 'hell' in messages[0].content %}a{% endif %}{% if 'x' in messages[1].content %}b{% endif %}
----
{{ messages[1].content.strip() }}
----
{{ messages[1].content | length }}
----
{{ tools }}{{ tools | tojson }}{{ documents ~ '' }}{{ nope }}
----
{{ tools | length }}
----
{% for t in tools %}{{ t }}{% endfor %}
----
{% if tools is defined and tools %}a{% endif %}{% for t in tools or [] %}{{ t }}{% endfor %}b
----
{% set system = messages[0].content if messages[0].role == 'system' else none %}[{{ system }}]{% if system %}s{% endif %}
----
{% set system = messages[0].content if messages[0].role == 'system' %}[{{ system }}]{{ system is defined }}
----
{%- set ns = namespace(last=none) -%}{% for m in messages %}{% if m.role == 'user' %}{% set ns.last = loop.index0 %}{% endif %}{% endfor %}{{ ns.last }}{% if 0 <= ns.last < 9 %}y{% endif %}
----
{%- for m in messages %}
    {%- if loop.index0 > 0 and loop.previtem.role == m.role %}same{% endif %}
    {% if m.role == 'user' %}
        {{ '<|%s|>' % m.role }}{{ '{}\n'.format(m.content) }}
    {% else %}
    {%- set parts = ['<|', m.role, '|>'] * 2 %}
{{ parts | join }}{{ m.t[0].function.arguments.items() | list }}
    {%- endif %}
{%- endfor %}
----
{% raw %} {{ x }}
{% endraw %}
a
  {% raw -%}
  b
  {%- endraw +%}
c
----
{{ raise_exception('no') }}
----
{{ bos_token }}{{ eos_token }}{{ pad_token }}{{ pad_token ~ 'x' }}
----
{{ pad_token + 'x' }}
----
{{ messages[0]['content'][:3] + '…' }}{{ messages[1]['content'][:3] }}
----
{{ messages[0].i + none }}
----
{{ messages | map(attribute='content') | list }}{{ messages | map(attribute='t') | select('defined') | list | length }}
----
{{ messages | selectattr('content') | map(attribute='content') | join(' ') }}{{ messages | rejectattr('content', 'none') | list | length }}
"""

# Of which templates are made whose white space matters.
PARTS = ["{{ 'a' }}", "{% if true %}", "{% endif %}", "{%- if true %}", "{% if true -%}", "{%- endif -%}", " ", "  ", "\n", "x", "{# c #}",
         "{{- 'b' }}", "{{ 'c' -}}", "\t", "{% set q = 1 %}", "{%+ set q = 1 %}", "{%- set q = 1 -%}", "{#- d -#}", "{% raw %}", "{% endraw %}", "{%- raw -%}", "{%- endraw %}", "{% endraw -%}", "{% set q = 1 +%}", "{#+ e +#}"]


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def raise_exception(message):
    raise jinja2.TemplateError(message)


def environment(**settings):
    env = ImmutableSandboxedEnvironment(extensions=[jinja2.ext.loopcontrols], **settings)
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    return env


def rendered(env, source, **variables):
    try:
        return env.from_string(source).render(**variables)
    except Exception:  # of any kind: such a template must fail
        return None


def lines(text):
    return [s for s in text.split("\n") if s]


def spaced(env, n):
    draw = random.Random(1)
    found = {}
    while len(found) < n:
        source = "".join(draw.choice(PARTS) for _ in range(draw.randint(2, 7)))
        want = rendered(env, source)
        if want is not None:  # its blocks are closed
            found[source] = want
    return sorted(found.items())


text = environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
chat = environment(trim_blocks=True, lstrip_blocks=True)
both = ["{{ %s }}" % e for e in lines(EXPRESSIONS)] + lines(STATEMENTS)
sources = ["{{ [%s] }}" % e for e in lines(EXPRESSIONS) if "| e" not in e and "safe" not in e] + both + lines(TEXTS)
given = {"messages": MESSAGES, "tools": None, "documents": None, "add_generation_prompt": False, "bos_token": "<s>", "eos_token": "</s>"}
print(json.dumps({
    "vars": VARS, "messages": MESSAGES,
    "text": [[s, rendered(text, s, **VARS)] for s in sources],
    "chat": [[s, rendered(chat, s, **given, **VARS)] for s in both + CHATS.strip("\n").split("\n----\n")] + spaced(chat, 700),
}, ensure_ascii=False, indent=0))
