import { expect, test } from 'vitest';
import { snippetSection, snippetsOf } from './use-snippets';

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
