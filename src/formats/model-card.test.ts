import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { type ModelCardFields, modelCard, withStudioLink } from './model-card';
import { formatRecipe } from './recipe-format';
import { parseRecipe } from './recipe-yaml';
import { snippetSection, snippetsOf } from './use-snippets';

const method = {
  title: 'TIES',
  reference: { label: 'Yadav et al. 2023', url: 'https://arxiv.org/abs/2306.01708' },
};

function card(more: Partial<ModelCardFields> = {}): string {
  const models = more.models ?? ['samples/kitchen'];
  return modelCard({
    title: 'Kitchen and harbour',
    recipe: formatRecipe({
      mergeMethod: 'ties',
      models: models.map((model) => ({ model, parameters: {} })),
      parameters: {},
      amalgam: {},
    }),
    models,
    hubIds: new Set(),
    method,
    of: 'language models',
    library: 'transformers',
    version: '0.1.0',
    ...more,
  });
}
/** Front matter as data, the page before the recipe, and the recipe in its fence. */
function split(text: string) {
  const [, front, body] = /^---\n([\s\S]*?)\n---\n([\s\S]*)$/.exec(text)!;
  const [, , recipe] = /\n(`{3,})yaml\n([\s\S]*)\n\1\n$/.exec(body!)!;
  const page = body!.slice(0, body!.indexOf('\n## Recipe'));
  return { front: parse(front!) as Record<string, unknown>, page, recipe: recipe! };
}

test('a card', () => {
  const text = card({
    base: 'HuggingFaceTB/SmolLM2-135M@main',
    models: ['HuggingFaceTB/SmolLM2-135M@main+owner/lora', 'samples/workshop'],
    hubIds: new Set(['HuggingFaceTB/SmolLM2-135M', 'owner/lora']),
  });
  expect(text).toBe(`---
base_model:
  - HuggingFaceTB/SmolLM2-135M
  - owner/lora
base_model_relation: merge
library_name: transformers
tags:
  - merge
  - amalgam
---

# Kitchen and harbour

A merge of language models, made with Amalgam 0.1.0 by TIES
([Yadav et al. 2023](https://arxiv.org/abs/2306.01708)).

## Models

* [\`HuggingFaceTB/SmolLM2-135M@main\`](https://huggingface.co/HuggingFaceTB/SmolLM2-135M/tree/main) (base)
* [\`HuggingFaceTB/SmolLM2-135M@main\`](https://huggingface.co/HuggingFaceTB/SmolLM2-135M/tree/main) with adapter [\`owner/lora\`](https://huggingface.co/owner/lora)
* \`samples/workshop\`

## Recipe

The same recipe and the same input files give the same output files, byte for byte.

\`\`\`yaml
merge_method: ties
models:
  - model: HuggingFaceTB/SmolLM2-135M@main+owner/lora
  - model: samples/workshop
\`\`\`
`);
});

/** Links of a page outside code spans. */
function links(page: string): string[] {
  return page.replace(/(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)/g, 'code').match(/(?<!\\)\]\(/g) ?? [];
}

describe('R48: hostile names', () => {
  const NAMES = [
    '"><img src=x onerror=alert(1)>',
    '<script>alert(1)</script>',
    '</code></pre><b>x',
    '[click](javascript:alert(1))',
    '![x](https://example.org/x.png)',
    '<javascript:alert(1)>',
    'https://example.org/x',
    'www.example.org',
    'a: [b',
    '- a',
    '1. a',
    '# a',
    '---',
    '...',
    '```',
    '`code`',
    '~~~',
    '*bold* _em_ ~~no~~',
    '| a | b |',
    '&lt;b&gt; &#60;',
    '!!python/object:os.system',
    '&anchor',
    '{{ jinja }}',
    '%TAG ! x',
    "it's",
    'no',
    'null',
    '1e5',
    ' leading and trailing ',
    'line\nbreak\r\n---\n',
    '\u2028\u0085\ufeff\u202e',
    '\\u003c\\',
    'tab\t',
    '#!$^',
    '=====',
  ];

  test.each(NAMES)('%j is no base model, comes back from the recipe, and stays text', (name) => {
    const text = card({ title: name, base: name, models: [name, 'other'] });
    const { front, page, recipe } = split(text);
    expect(front).toEqual({ library_name: 'transformers', tags: ['merge', 'amalgam'] });
    expect(parseRecipe(recipe).recipe?.models?.[0]?.model).toBe(name);
    expect(text).not.toMatch(/<(?!\/?$)/);
    expect(text).not.toMatch(/[\p{Cf}\p{Zl}\p{Zp}\u0085\r]/u);
    // Only our own link, the method's, is a link.
    expect(links(page)).toHaveLength(1);
    expect(page.split('\n').filter((line) => line.startsWith('#'))).toHaveLength(2);
  });

  test('any names at all', () => {
    const name = fc.string({ unit: 'binary', minLength: 1 }).filter((s) => !/[+@]/.test(s));
    fc.assert(
      fc.property(name, name, (a, b) => {
        const { front, page, recipe } = split(card({ title: a, base: b, models: [a] }));
        expect(front.base_model).toBeUndefined();
        expect(parseRecipe(recipe).recipe?.models?.[0]?.model).toBe(a);
        expect(page).not.toContain('<');
        expect(links(page)).toHaveLength(1);
      }),
    );
  });

  test('an address that is not plain https is no link', () => {
    const text = card({ method: { title: 'x', reference: { label: 'paper', url: 'javascript:alert(1)' } } });
    expect(split(text).page).not.toContain('javascript');
    expect(card({ models: ['a b/../c'], hubIds: new Set(['a b/../c']) })).not.toContain('huggingface.co');
  });

  test('the studio is linked once, below the title, where its address is https', () => {
    const text = card({ title: 'Mine' });
    const linked = withStudioLink(text, 'https://studio.example/amalgam/#tab=files', 'me/mine');
    expect(linked).toContain(
      '# Mine\n\n[Open this recipe in Amalgam](https://studio.example/amalgam/#hub=me/mine)\n\n',
    );
    expect(withStudioLink(linked, 'https://studio.example/amalgam/', 'me/mine')).toBe(linked);
    expect(withStudioLink(text, 'http://localhost:5173/', 'me/mine')).toBe(text);
  });

  test('a recipe with backticks stays inside its fence', () => {
    const { recipe } = split(card({ recipe: 'merge_method: "`````"\nmodels: [{model: a}]\n' }));
    expect(parseRecipe(recipe).recipe?.mergeMethod).toBe('`````');
  });
});

const titles = (...args: Parameters<typeof snippetsOf>) => snippetsOf(...args).map(({ title }) => title);

test('each form of output has the programs that run it', () => {
  expect(titles({ name: 'm', model: true, architecture: 'LlamaForCausalLM' })).toEqual([
    'transformers',
    'MLX',
  ]);
  expect(titles({ name: 'm', model: true, architecture: 'BertModel' })).toEqual(['transformers']);
  expect(titles({ name: 'm', model: false, gguf: 'm-Q8_0.gguf' })).toEqual([
    'llama.cpp',
    'Ollama',
    'LM Studio',
  ]);
  expect(titles({ name: 'm', model: false, base: 'owner/base', architecture: 'CAUSAL_LM' })).toEqual([
    'PEFT',
  ]);
  const lora = { name: 'l', model: false, base: 'owner/base', gguf: 'l-F16.gguf' };
  expect(titles(lora)).toEqual(['llama.cpp', 'Ollama', 'PEFT']);
  expect(titles({ ...lora, peft: false })).toEqual(['llama.cpp', 'Ollama']);
});

test('names are the real ones, in quotes where a shell needs them', () => {
  const code = (name: string) =>
    Object.fromEntries(
      snippetsOf({ name, model: false, gguf: `${name}-Q4_0.gguf` }).map((s) => [s.title, s.code]),
    );
  expect(code('kitchen')['llama.cpp']).toBe('llama-cli -m kitchen-Q4_0.gguf');
  expect(code('kitchen').Ollama).toBe(
    "echo 'FROM ./kitchen-Q4_0.gguf' > Modelfile\nollama create kitchen -f Modelfile\nollama run kitchen",
  );
  expect(code("It's mine")['llama.cpp']).toBe("llama-cli -m 'It'\\''s mine-Q4_0.gguf'");
  expect(code("It's mine").Ollama).toContain('ollama run it-s-mine');
  const [lora, ollama] = snippetsOf({ name: 'l', model: false, base: 'b', gguf: "l's-F16.gguf" });
  expect(lora!.code).toBe("llama-cli -m base.gguf --lora 'l'\\''s-F16.gguf'");
  expect(ollama!.code).toContain("'FROM ./base.gguf\nADAPTER ./l'\\''s-F16.gguf' > Modelfile");
  const [peft] = snippetsOf({ name: 'l', model: false, base: 'a"b\n```' });
  expect(peft!.code).toContain('from_pretrained("a\\"b\\n```"');
  expect(snippetSection([peft!])).toMatch(/\n````python\n[\s\S]*\n````\n$/);
});
