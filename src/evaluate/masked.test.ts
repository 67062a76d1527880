import { readFileSync } from 'node:fs';
import { expect, it, test } from 'vitest';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { ENCODER_NAMES } from '../forward/families.test.cases';
import { openRunner } from '../forward/runner';
import { ROOMY, sourceOf } from '../forward/runner.test.cases';
import { type Architecture, partOf } from '../models/architecture';
import { checkEncoder, loadEncoder, strayEncoder } from './masked.test.cases';

const read = async (path: string) => new Uint8Array(readFileSync(path));

test.each(ENCODER_NAMES)('%s: logits and masked losses are those of transformers', async (name) => {
  const engine = createCpuBackend();
  await checkEncoder(name, read, engine);
  engine.close();
});

const attentions = ({ blocks }: Architecture) => blocks.map((block) => partOf(block, 'attention')!);

it.each([
  ['bert', 'what is behind is not seen', (a) => attentions(a).forEach((part) => void delete part.bothWays)],
  ['bert', 'kinds of text are left out', (a) => void delete a.embedding.positions!.types],
  ['roberta', 'positions begin one row early', (a) => void a.embedding.positions!.offset--],
  [
    'distilbert',
    'another activation in the head',
    (a) => void Object.assign(a.final.transform!, { activation: 'relu' }),
  ],
  ['modernbert', 'windows a token too wide', (a) => void attentions(a)[1]!.bothWays!.reach!++],
  [
    'modernbert',
    'one base for all rotations',
    (a) => void Object.assign(attentions(a)[1]!, { rope: attentions(a)[0]!.rope }),
  ],
] satisfies [string, string, (architecture: Architecture) => void][])(
  '%s: %s, and it shows',
  async (name, _, spoil) => {
    const golden = await loadEncoder(name, read);
    const { architecture } = golden;
    spoil(architecture);
    if (!architecture.embedding.positions?.types)
      golden.weights.delete('bert.embeddings.token_type_embeddings.weight');
    const engine = createCpuBackend();
    expect(await strayEncoder(golden, engine, ROOMY, architecture)).toBeGreaterThan(1e-4);
    engine.close();
  },
);

it('says that a model without the head cannot fill in, and takes names of TensorFlow and a stored pooler', async () => {
  const { architecture, weights } = await loadEncoder('bert', read);
  const engine = createCpuBackend();
  const of = (kept: (name: string) => string | undefined) =>
    sourceOf(
      new Map(
        [...weights].flatMap(([name, tensor]) => {
          const to = kept(name);
          return to === undefined ? [] : [[to, tensor] as const];
        }),
      ),
    );
  const renamed = of((name) =>
    name.replace('LayerNorm.weight', 'LayerNorm.gamma').replace('LayerNorm.bias', 'LayerNorm.beta'),
  );
  openRunner(engine, architecture, renamed, ROOMY).close();
  const withPooler = new Map(weights).set(
    'bert.pooler.dense.bias',
    weights.get('bert.embeddings.LayerNorm.bias')!,
  );
  openRunner(engine, architecture, sourceOf(withPooler), ROOMY).close();
  const headless = of((name) => (name.startsWith('cls.') ? undefined : name.replace('bert.', '')));
  expect(() => openRunner(engine, architecture, headless, ROOMY)).toThrow(
    /no head that fills in masked words/,
  );
  engine.close();
});
