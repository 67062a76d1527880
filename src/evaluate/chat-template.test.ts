import { describe, expect, it } from 'vitest';
import { AmalgamError } from '../errors';
import { chatTemplateOf, renderChat } from './chat-template';

const TEMPLATE =
  "{{ bos_token }}{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] | trim }}{{ eos_token }}\n{% endfor %}" +
  '{% if add_generation_prompt %}<|assistant|>{% endif %}';

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

  it('that do not render are refused', async () => {
    const failing = renderChat("{{ raise_exception('no system role') }}", [], {});
    await expect(failing).rejects.toThrow(AmalgamError);
    await expect(renderChat('{% for %}', [], {})).rejects.toMatchObject({ code: 'TokenizerInvalid' });
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
});
