import { describe, expect, test } from 'vitest';
import { matchModules } from './foreign-text';

const NAME = 'x/adapter_config.json';
const find = async (patterns: string[], path: string) =>
  (
    await matchModules(
      patterns.map((pattern, value) => ({ pattern, value })),
      [path],
      NAME,
    )
  ).get(path);

describe('module patterns', () => {
  /** PEFT: re.match(rf"(.*\.)?({key})$", path), checked in Python for each of these. */
  test.each([
    ['q_proj', 'model.layers.0.self_attn.q_proj', true],
    ['q_proj', 'q_proj', true],
    ['q_proj', 'model.layers.0.self_attn.eq_proj', false],
    ['proj', 'model.q_proj', false],
    ['self_attn.q_proj', 'model.layers.0.self_attn.q_proj', true],
    ['model.layers.2.mlp.down_proj', 'model.layers.2.mlp.down_proj', true],
    ['model.layers.2.mlp.down_proj', 'model.layers.12.mlp.down_proj', false],
    ['layers.2.mlp.down_proj', 'model.layers.2.mlp.down_proj', true],
    ['^model.layers.0.q_proj', 'model.layers.0.q_proj', true],
    ['^layers.0.q_proj', 'model.layers.0.q_proj', false],
    ['(q|k)_proj', 'model.k_proj', true],
    ['layers\\.[01]\\..*q_proj', 'model.layers.1.self_attn.q_proj', true],
    ['layers\\.[01]\\..*q_proj', 'model.layers.2.self_attn.q_proj', false],
    ['q_proj|v_proj', 'model.v_proj', true],
    ['q_proj', 'model.q_proj.inner', false],
    ['(?!.*k_proj).*_proj', 'model.q_proj', true],
    ['(?!.*k_proj).*_proj', 'model.k_proj', false],
    ['(?P<side>left|right)_(?P=side)', 'model.left_left', true],
    ['(?P<side>left|right)_(?P=side)', 'model.left_right', false],
    ['(a)\\3', 'model.aa', true],
    ['\\Aq_proj\\Z', 'q_proj', true],
    ['\\Aq_proj\\Z', 'AqZ_proj', false],
    ['layers\\-1\\_q', 'layers-1_q', true],
    ['[a\\-z]_q', 'b_q', false],
    ['\\bq_proj', 'model.q_proj', true],
  ])('%s on %s: %s', async (pattern, path, matches) => {
    expect(await find([pattern], path)).toBe(matches ? 0 : undefined);
  });

  test('the first that matches decides, in the order of the file, expressions and plain paths mixed', async () => {
    const patterns = ['down_proj', '1', 'mlp.(down|up)_proj', 'mlp.up_proj'];
    expect(await find(patterns, 'layers.1.mlp.down_proj')).toBe(0);
    expect(await find(patterns, 'layers.1')).toBe(1);
    expect(await find(patterns, 'layers.1.mlp.up_proj')).toBe(2);
    expect(await find(patterns, 'layers.2')).toBeUndefined();
  });

  test.each(['(?i)Q_PROJ', 'a*+', 'a**', '[z-a]', '(a', 'a)', '[a', '\\', '(?>a)b', '(?(1)a|b)'])(
    'R58: the pattern %s, which is not the same in JavaScript or none, is refused by name',
    async (pattern) => {
      await expect(find([pattern], 'model.q_proj')).rejects.toMatchObject({
        code: 'AdapterUnsupported',
        message: `${NAME}: the module pattern “${pattern}” cannot be read.`,
      });
    },
  );

  test('R58: as many plain patterns as modules are looked up; more forms of them than can be are refused', async () => {
    const paths = Array.from({ length: 30_000 }, (_, i) => `model.layers.${i % 48}.mlp.experts.${i}.up_proj`);
    const begin = process.cpuUsage();
    const found = await matchModules(
      paths.map((pattern, value) => ({ pattern, value })),
      paths,
      NAME,
    );
    expect(paths.every((path, i) => found.get(path) === i)).toBe(true);
    expect(process.cpuUsage(begin).user).toBeLessThan(4_000_000);
    const forms = Array.from({ length: 4000 }, (_, i) => ({
      pattern: [...i.toString(2).padStart(12, '0')].map((bit) => (bit === '1' ? '.a' : 'a')).join(''),
      value: i,
    }));
    await expect(matchModules(forms, paths, NAME)).rejects.toMatchObject({ code: 'AdapterUnsupported' });
  });
});
