import { describe, expect, it } from 'vitest';
import { AmalgamError } from '../errors';
import { BUILT_IN_TEMPLATES, chatTemplateOf } from '../formats/chat-template';
import type { Message } from '../formats/conversations';
import { formatDate, notRendered, renderChats } from './chat-template';

const TEMPLATE =
  "{{ bos_token }}{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] | trim }}{{ eos_token }}\n{% endfor %}" +
  '{% if add_generation_prompt %}<|assistant|>{% endif %}';

const renderChat = async (template: string, messages: readonly Message[], tokens: Record<string, string>) => {
  const [rendered] = await renderChats(template, [messages], tokens, true);
  if ('refused' in rendered!) throw notRendered(rendered.refused);
  return rendered!.text;
};

describe('chat templates', () => {
  it('render a conversation up to where the assistant begins', async () => {
    const messages = [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: ' Hello ' },
    ] as const;
    expect(await renderChat(TEMPLATE, messages, { bos_token: '<s>', eos_token: '</s>' })).toBe(
      '<s><|system|>Be brief.</s>\n<|user|>Hello</s>\n<|assistant|>',
    );
  });

  it('render whole conversations, and say of one alone why they refuse it', async () => {
    const one: Message[] = [
      { role: 'user', content: 'Hello' },
      { role: 'assistant', content: 'Hi' },
    ];
    const strict = `{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}${TEMPLATE}`;
    const three = [one, [{ role: 'system', content: 'x' }], one];
    const text = '<|user|>Hello</s>\n<|assistant|>Hi</s>\n';
    expect(await renderChats(strict, three, { bos_token: '', eos_token: '</s>' }, false)).toEqual([
      { text },
      { refused: 'no system role' },
      { text },
    ]);
  });

  it.each([
    [
      'break',
      '{% for i in range(4) %}[{% if i == 2 %}last{% break %}{% endif %}{{ i }}]{% endfor %}!',
      '[0][1][last!',
    ],
    [
      'continue',
      '{% for i in range(3) %}[{% if i == 1 %}none{% continue %}{% endif %}{{ i }}]{% endfor %}!',
      '[0][none[2]!',
    ],
    [
      'break of an inner loop',
      '{% for i in range(2) %}{% for j in range(3) %}{{ j }}{% break %}{% endfor %}{{ i }}{% endfor %}',
      '0001',
    ],
    [
      'break in the else of an inner loop, which is of the outer one',
      '{% for i in range(3) %}[{{ i }}{% for j in [] %}x{% else %}e{% if i == 1 %}{% break %}{% endif %}{% endfor %}]{% endfor %}!',
      '[0e][1e!',
    ],
    [
      'continue in the else of an inner loop',
      '{% for i in range(3) %}[{{ i }}{% for j in [] %}x{% else %}{% if i == 1 %}{% continue %}{% endif %}e{% endfor %}]{% endfor %}!',
      '[0e][1[2e]!',
    ],
    [
      'break ahead of an else, after a turn that ends',
      '{% for j in range(3) %}{{ j }}{% if j == 1 %}{% break %}{% endif %}.{% else %}e{% endfor %}!',
      '0.1!',
    ],
  ])('keep what a turn says ahead of its %s', async (_, template, text) => {
    expect(await renderChat(template, [], {})).toBe(text);
  });

  it('that leave every turn of a loop with an else are refused: Jinja renders the else then', async () => {
    for (const left of ['break', 'continue']) {
      const template = `{% for j in range(3) %}{{ j }}{% ${left} %}{% else %}e{% endfor %}`;
      await expect(renderChat(template, [], {})).rejects.toMatchObject({
        code: 'TokenizerInvalid',
        message: expect.stringContaining('a loop that has an else'),
      });
    }
  });

  it('that do not render are refused', async () => {
    const failing = renderChat("{{ raise_exception('no system role') }}", [], {});
    await expect(failing).rejects.toThrow(AmalgamError);
    await expect(renderChat('{% for %}', [], {})).rejects.toMatchObject({ code: 'TokenizerInvalid' });
  });

  it.each([
    ['a long range', '{% set x = range(1000000000) %}', 'a range of 1000000000 numbers'],
    ['a range without an end', '{% set x = range(0, 5, 0) %}', 'a range of Infinity numbers'],
    [
      'a list that doubles',
      '{% set s = namespace(x=[1]) %}{% for i in range(99) %}{% set s.x = s.x + s.x %}{% endfor %}',
      'characters and list elements',
    ],
    [
      'a text that doubles, kept in capitals',
      "{% set s = namespace(x='ab', all=[]) %}{% for i in range(99) %}{% set s.x = s.x ~ s.x %}" +
        '{% set s.all = s.all + [s.x | upper] %}{% endfor %}',
      'characters and list elements',
    ],
  ])('R59: are stopped before they fill the memory: %s', async (_, template, reason) => {
    await expect(renderChat(template, [], {})).rejects.toMatchObject({
      code: 'TokenizerInvalid',
      message: expect.stringContaining(reason),
    });
  });

  it('R59: render a long conversation whole', async () => {
    const content = 'word '.repeat(400_000);
    const messages: Message[] = Array.from({ length: 4 }, () => ({ role: 'user', content }));
    const rendered = await renderChat(TEMPLATE, messages, { bos_token: '', eos_token: '' });
    expect(rendered?.length).toBe(4 * (content.length - 1 + '<|user|>\n'.length) + '<|assistant|>'.length);
  });

  it('may count and ask for the date', async () => {
    expect(await renderChat('{% for i in range(5, 0, -2) %}{{ i }} {% endfor %}', [], {})).toBe('5 3 1 ');
    expect(await renderChat("{{ strftime_now('%%') }}{{ None is none and not False }}", [], {})).toBe(
      '%true',
    );
    expect(formatDate(new Date(2026, 2, 5, 7, 9), '%d %b %B %Y-%m %H:%M %%')).toBe(
      '05 Mar March 2026-03 07:09 %',
    );
  });

  it('are found in the config, in a list, or in a file of their own', () => {
    const tokens = { bos_token: '<s>', eos_token: { content: '</s>' }, pad_token: null };
    expect(chatTemplateOf({ ...tokens, chat_template: 'a' })).toEqual({
      template: 'a',
      tokens: { bos_token: '<s>', eos_token: '</s>' },
    });
    const several = [
      { name: 'tool_use', template: 'x' },
      { name: 'default', template: 'b' },
    ];
    expect(chatTemplateOf({ chat_template: several })?.template).toBe('b');
    expect(chatTemplateOf({ chat_template: 'a' }, 'c')?.template).toBe('c');
    expect(chatTemplateOf({})).toBeUndefined();
  });

  it.each([
    [
      'alpaca',
      'Be brief.\n\n### Instruction:\nHello\n\n### Response:\nHi</s>\n\n### Instruction:\nBye\n\n### Response:\n',
    ],
    [
      'chatml',
      '<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\nHi<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n',
    ],
    [
      'exaone',
      '[|system|]Be brief.[|endofturn|]\n[|user|]Hello\n[|assistant|]Hi[|endofturn|]\n[|user|]Bye\n[|assistant|]',
    ],
    [
      'llama3',
      '<s><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nHello<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nHi<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nBye<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n',
    ],
    ['mistral', '<s>[INST] Be brief.\n\nHello [/INST] Hi</s>[INST] Bye [/INST]'],
  ])('built in as %s render turns and begin an answer', async (name, text) => {
    const messages = [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Hello' },
      { role: 'assistant', content: 'Hi' },
      { role: 'user', content: 'Bye' },
    ] as const;
    const tokens = { bos_token: '<s>', eos_token: '</s>' };
    expect(await renderChat(BUILT_IN_TEMPLATES[name]!, messages, tokens)).toBe(text);
  });
});
