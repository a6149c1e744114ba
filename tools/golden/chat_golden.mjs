// Renders chat templates with Hugging Face's own JavaScript Jinja and writes what package tokenizer/chat must render too.
//
//   npm install @huggingface/jinja
//   node chat_golden.mjs OUT.json
//
// Run it in the folder where the npm package is installed. The templates are written for this test, in the manner of those
// that models bring along.
import { createRequire } from 'node:module';
import fs from 'node:fs';
import path from 'node:path';

const require = createRequire(path.join(process.cwd(), 'package.json'));
const { Template } = require('@huggingface/jinja');

const talk = [
  { role: 'system', content: 'Be brief.' },
  { role: 'user', content: '  What is 2 < 3 & "so"?  ' },
  { role: 'assistant', content: '<think>\nhm\n</think>\n\nYes: true.' },
  { role: 'user', content: 'Größe?\n線' },
];
const call = [
  { role: 'user', content: 'Weather?' },
  { role: 'assistant', content: null, tool_calls: [{ type: 'function', function: { name: 'weather', arguments: { city: 'Ulm', days: 2, deep: { b: 1.5, a: [true, null] } } } }] },
  { role: 'tool', content: '{"t": 21}' },
];
const tools = [{ type: 'function', function: { name: 'weather', description: 'Tells "it"', parameters: { type: 'object', properties: { z: { type: 'string' }, city: { type: 'string' } }, required: ['city'] } } }];

const templates = {
  chatml: `{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}`,
  header: `{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|h|>' + message['role'] + '<|/h|>\\n\\n'+ message['content'] | trim + '<|e|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}{% if add_generation_prompt %}{{ '<|h|>assistant<|/h|>\\n\\n' }}{% endif %}`,
  inst: `{% if messages[0]['role'] == 'system' %}{% set rest = messages[1:] %}{% set system = messages[0]['content'] %}{% else %}{% set rest = messages %}{% set system = false %}{% endif %}
{% for m in rest %}
    {% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}
    {% if loop.first and system != false %}
        {% set content = '<<SYS>>\\n' + system + '\\n<</SYS>>\\n\\n' + m['content'] %}
    {% else %}
        {% set content = m['content'] %}
    {% endif %}
    {%- if m['role'] == 'user' %}
{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}
    {%- elif m['role'] == 'assistant' -%}
        {{ ' ' + content.strip() + ' ' + eos_token }}
    {%- endif %}
{% endfor %}`,
  think: `{%- set ns = namespace(last=-1, seen=false) -%}
{%- for m in messages %}{% if m.role == 'user' %}{% set ns.last = loop.index0 %}{% endif %}{% endfor -%}
{%- for m in messages -%}
{%- if m.role == 'assistant' and '</think>' in m.content and loop.index0 < ns.last %}
{{- '<|a|>' ~ m.content.split('</think>')[-1].lstrip('\\n') -}}
{%- else %}
{{- '<|' ~ m.role[0] ~ '|>' ~ m.content -}}
{%- endif -%}
{{ '' if loop.last else '\\n' }}
{%- endfor -%}
{{ ' last=' ~ ns.last }}`,
  toolbox: `{%- if tools %}{{ 'Tools:\\n' }}{% for t in tools %}{{ t | tojson }}{{ '\\n' }}{% endfor %}{{ tools[0].function.parameters | tojson(indent=2) }}{% endif %}
{%- for m in messages %}
{%- if m.tool_calls is defined and m.tool_calls %}
{%- for c in m.tool_calls %}{{ '\\n<call>' ~ c.function.name ~ '(' }}{% for k, v in c.function.arguments.items() %}{{ k ~ '=' ~ (v | tojson) }}{% if not loop.last %}{{ ', ' }}{% endif %}{% endfor %}{{ ')</call>' }}{% endfor %}
{%- else %}{{ '\\n' ~ m.role | upper ~ ': ' ~ m.content }}{% endif %}
{%- endfor %}`,
  macro: `{% macro show(m, mark='*') %}{{ mark }}{{ m.role | capitalize }}{{ mark }} {{ m.content | length }}{% endmacro %}{% for m in messages %}{{ show(m) }}|{{ show(m, mark='-') }}
{% endfor %}{{ messages | map(attribute='role') | join(', ') }} {{ messages | selectattr('role', 'equalto', 'user') | list | length }}`,
  control: `{% for m in messages %}{% if m.role == 'system' %}{% continue %}{% endif %}{% if loop.index > 3 %}{% break %}{% endif %}{{ loop.index }}/{{ loop.length }}:{{ m.content[:3] }}{{ m.content[-2:] }};{% endfor %}{% set x %}block {{ messages | length }}{% endset %}{{ x }} {{ 7 // 2 }} {{ 7 % 4 }} {{ 1.5 * 2 }} {{ 'y' if 'ab' in 'cabd' else 'n' }} {{ 'y' if not true else 'n' }} {{ 'y' if none is none else 'n' }} {{ 'y' if nothing is defined else 'n' }} {{ nothing | default('d') }} {{ [1, 2] + [3] }} {{ 'a,b'.split(',') | last }} {{ messages[-1]['role'] }} {{ 'x'.upper() if messages else 'y' }}`,
  white: `A
  {% if true %}
  B
  {%- endif %}
  C {#- note -#} D
{% for i in range(3) %}
  {{ i }}
{% endfor %}
E`,
};

// Constructs one by one. What JavaScript's Jinja prints unlike Python's (true for True) is left out.
const parts = [
  { role: 'user', content: 'hi there', x: null }, { role: 'assistant', content: 'yo', tool_calls: [{ id: 'abc', function: { name: 'f', arguments: '{"a": 1}' } }] },
  { role: 'user', content: [{ type: 'text', text: 'T1' }, { type: 'image' }] },
];
const single = [
  `{{ ('a' if messages else 'b') ~ 'c' }}`,
  `{{ 'x' + ('a' if not messages else 'b') }}`,
  `{{ 'a' if false else 'b' if true else 'c' }}`,
  `{% set x = ('p' if messages|length > 9 else 'q') %}{{ x }}`,
  `{{ ['a' if true else 'b', 'c'] | join('-') }}`,
  `{% if 'z' not in 'abc' and messages[0].role is not none %}ok{% endif %}`,
  `{% if messages[0].nope is not defined %}nd{% endif %}{% if messages[0].x is none %}none{% endif %}`,
  `{% for m in messages[::-1] %}{{ m.role[0] }}{% endfor %}`,
  `{% for m in messages[1:] %}{{ loop.index }}{{ m.role }}{% if m.content is string %}S{% elif m.content is iterable %}I{% for c in m.content %}{{ c.type }}{% if c.type == 'text' %}{{ c['text'] }}{% endif %}{% endfor %}{% endif %}{% endfor %}`,
  `{{ messages[1]['tool_calls'][0]['function']['name'] }}{{ messages[1].tool_calls[0].function.arguments | tojson }}`,
  `{% set l = [] %}{% set l = l + [1] %}{% set l = l + [2, 3] %}{{ l | length }}{{ l[-1] }}`,
  `{{ messages | map(attribute='role') | list | tojson }}`,
  `{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | first }}`,
  `{{ messages | rejectattr('role', 'equalto', 'user') | list | length }}`,
  `{% for k, v in {'b': 1, 'a': [2]}.items() %}{{ k }}={{ v }};{% endfor %}`,
  `{% for k, v in {'b': 1, 'a': 2} | items %}{{ k }}={{ v }};{% endfor %}`,
  `{% for k in {'b': 1, 'a': 2} %}{{ k }};{% endfor %}`,
  `{{ {'a': {'b': 'c'}}['a']['b'] }}{{ {'a': 1}.a }}`,
  `{%- set ns = namespace(found=false, items=[]) -%}{%- for m in messages -%}{%- if m.role == 'assistant' -%}{%- set ns.found = true -%}{%- set ns.items = ns.items + [m.role] -%}{%- endif -%}{%- endfor -%}{{ 'F' if ns.found }}{{ ns.items | length }}`,
  `{{ "a\\nb\\tc\\"d\\\\e" }}`,
  `{{ 'it\\'s' }}`,
  `{{ '  x '|trim }}{{ "abc"|upper|lower|title }}`,
  `{{ 'abc'[1] }}{{ 'abc'[-1] }}{{ 'abcdef'[1:4] }}{{ 'abcdef'[:-2] }}`,
  `{{ 5 | string + '!' }}{{ '7' | int + 1 }}{{ 3.7 | int }}`,
  `{% if messages and messages[0]['role'] == 'user' and (messages|length) > 2 or false %}y{% endif %}`,
  `{% if not (messages[0]['role'] == 'user') %}n{% else %}e{% endif %}`,
  `{{ messages[0]['content'].split(' ')[1].upper() }}`,
  `{% for i in range(1, 6, 2) %}{{ i }}{% endfor %}`,
  `{% macro m(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(a=4, b=5) }}`,
  `{%- macro r(d) -%}{%- for k, v in d.items() -%}{%- if v is mapping -%}{{ k }}({{ r(v) }}){%- else -%}{{ k }}:{{ v }},{%- endif -%}{%- endfor -%}{%- endmacro -%}{{ r({'a': 1, 'b': {'c': 2}}) }}`,
  `{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{{ x }}{% for i in [1] %}{% set x = 3 %}{% endfor %}{{ x }}`,
  `{{ messages[0].role ~ ':' ~ 3 ~ '.' ~ 1.5 }}`,
  `{{ [1, 'a', none, true, {'k': 'v'}] | tojson }}`,
  `{# c #}{{ 'a' }}{# multi
line #}
b`,
  `{{ missing }}|{{ missing | default('d') }}|{{ '' | default('e', true) }}`,
  `{{ messages | length - 1 }}`,
  `{{ (messages | length) - 1 }}`,
  `{{ messages[0].content | length + 1 }}`,
  `{{ 'a' in ['a', 'b'] and 'role' in messages[0] }}`.replace("{{ ","{{ 'T' if ").replace(" }}"," else 'F' }}"),
  `{{ -1 }}{{ - 2 + 5 }}`,
  `{% if messages[-1].content is string and messages[-1].content.startswith('x') %}a{% else %}b{% endif %}`,
  `{{ messages | sort(attribute='role') | map(attribute='role') | join(',') }}`,
  `{{ {'b':2,'a':1} | dictsort }}`.replace('| dictsort',"| dictsort | first | last"),
  `{% for m in messages if m.role == 'user' %}{{ loop.index }}/{{ loop.length }}{% else %}none{% endfor %}`,
  `{% for m in [] %}x{% else %}none{% endfor %}`,
  `{{ messages|map(attribute='role')|unique|list|length }}`,
  `{{ 'a' ~ 'b' if true }}`,
  `{{ messages[0]['content'][0:2] + '…' if messages[0]['content']|length > 2 else messages[0]['content'] }}`,
  '{{- "a\n\nb" }}',
  "{{ 'x\ny' ~ \"z\" }}",
  `{%- if not tools is defined %}{%- set tools = none %}{% endif %}{% if tools is not none %}t{% else %}n{% endif %}`,
  `{%- set ns = namespace(name=none) %}{% if ns.name is none %}N{% endif %}{% set ns.name = 'q' %}{% if ns.name is none %}N{% else %}{{ ns.name }}{% endif %}{% set ns.name = none %}{{ 'Z' if ns.name is none }}`,
  `{%- set us = messages | selectattr("role", "equalto", "user") | list %}{% for m in messages %}{% if m == us[-1] %}L{{ loop.index }}{% endif %}{% endfor %}`,
  `{% set f = [] %}{%- for m in messages %}{%- if m["role"] not in ["tool", "x"] and not m.get("tool_calls") %}{%- set f = f + [m] %}{%- endif %}{%- endfor %}{{ f | length }}`,
  `{% for m in messages %}{% if loop.first or (messages[loop.index0 - 1].role != "user") %}<{{ m.role }}>{% endif %}{% endfor %}`,
  `{% set out = {'name': 'f', 'b': [1]} | tojson %}{{ out[:-1] }}, "id": "{{ 'abcdefghijkl'[-9:] }}"}`,
  `{{ '"' + ['a','b'] | join('" | "') + '"' }}`,
  `{{ "x: " + 5 | tojson }}{{ 'c: ' + 3|string }}`,
  `{% set x = 'a' %}{%- if x == "b" or x|length > 50 -%}big{%- else -%}{{ x + "[]" }}{%- endif -%}`,
  `{% macro t(c) -%}{%- if c is string -%}{{- c }}{%- elif c is iterable and c is not mapping -%}{%- for i in c -%}{%- if i is mapping and i.type == 'text' -%}{{- i.text }}{%- endif -%}{%- endfor -%}{%- endif -%}{%- endmacro -%}{% for m in messages %}{%- set u = t(m.content) -%}[{{ u }}]{{- '/n' if (e is defined and not e and not u.endswith("/n")) else '' -}}{% endfor %}`,
  `{% set parts = 'a</t>b'.split('</t>') -%}{{ parts | first }}{{ (parts | last).lstrip('\\n') }}{{ parts[0].rstrip('\\n').split('<t>') | last }}`,
  `{{ messages[1].content if messages[1].content is defined else messages[1] }}`,
  `{% for m in messages %}{{ m.content | tojson if m.content is not string else m.content }};{% endfor %}`,
  `{%- if messages[0].content and messages[0].thinking %}both{%- elif messages[0].content %}c{%- endif %}`,
  `{{- "it's" + ' "q"' }}{{ 'tab\\there' }}`,
  `{% for tool in [{'function': {'name': 'w'}}] %}{%- set tool = tool.function %}{{ tool.name }}{% endfor %}`,
  `{%- macro sys() -%}{%- if who is not defined %}{%- set who = "me" %}{%- endif %}{{- who + "!" }}{%- endmacro -%}{{- sys() }}`,
  `{{ messages[0]['x'] is none }}`.replace('{{ ',"{{ 'T' if ").replace(' }}'," else 'F' }}"),
  `{% if messages[0].nope %}a{% elif messages[0].x %}b{% else %}c{% endif %}`,
  `{% if "content" in messages[0] and "zz" not in messages[0] %}ok{% endif %}`,
  `{{ 'a' if messages[0].nope is defined and messages[0].nope.deep == 3 else 'b' }}`,
  `{{ messages | length > 2 and 'yes' or 'no' }}`,
  `{% set i = 3 %}{% for j in range(i) %}{{ j }}{% endfor %}{{ range(2) | list | length }}`,
  `{{ '%.2f' }}{{ '{}' }}{{ '{% x %}' }}`,
];

const cases = [];
for (const template of single) {
  cases.push({ name: template, template, messages: parts, generate: false, want: new Template(template).render({ messages: parts, add_generation_prompt: false }) });
}
for (const [name, template] of Object.entries(templates)) {
  for (const generate of [false, true]) {
    const conversation = { messages: name === 'toolbox' ? call : talk, generate };
    if (name === 'toolbox') conversation.tools = tools;
    const vars = { messages: conversation.messages, tools: conversation.tools, add_generation_prompt: generate, bos_token: '<s>', eos_token: '</s>' };
    let want, error;
    try { want = new Template(template).render(vars); } catch (e) { error = e.message; }
    cases.push({ name, template, ...conversation, want, error });
  }
}
fs.writeFileSync(process.argv[2], JSON.stringify(cases, null, 1) + '\n');
console.log(`${cases.length} cases in ${process.argv[2]}`);
