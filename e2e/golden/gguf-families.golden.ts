/** Families of golden/forward2 that can be written as GGUF: log probabilities in llama.cpp against the golden's. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { createCpuBackend } from '../../src/backend/cpu/cpu-backend';
import { parseModelConfig } from '../../src/formats/model-config';
import { type FamilyGolden, loadFamily } from '../../src/forward/families.test.cases';
import { openRunner } from '../../src/forward/runner';
import { ROOMY, sourceOf } from '../../src/forward/runner.test.cases';
import { ggufEncoder, ggufFile } from '../../src/gguf/gguf-file';
import { planGguf } from '../../src/gguf/gguf-plan';
import { byteLevelTokenizer } from '../../src/gguf/tokenizer.test.support';
import { GGUF_ARCHITECTURES } from '../../src/models/gguf-architectures';
import { plainBlocks } from '../../src/models/plain-block';
import { resolveArchitecture } from '../../src/models/resolution';
import { hasLlama, llama, logProbabilities } from '../llama-cpp';
import { reference } from './reference';

const folder = join(reference, 'golden/forward2');
/** Folders by what their configs call the model, where the two differ. */
const FOLDERS: Record<string, string> = { hunyuan_v1_dense: 'hunyuan_dense' };
const folderOf = (name: string) => join(folder, FOLDERS[name] ?? name);
/** Fixtures with what the real ones do not have and llama.cpp's graph cannot do. */
const REFUSED: Record<string, RegExp> = { qwen3_moe: /do not sum to 1/, olmoe: /fewer heads of keys/ };
const families = Object.keys(GGUF_ARCHITECTURES).filter((name) => existsSync(folderOf(name)));
const scratch = mkdtempSync(join(tmpdir(), 'amalgam-gguf-'));
afterAll(() => rmSync(scratch, { recursive: true }));

/** Logits where YaRN's bounds are rounded, as llama.cpp always does; the plan warns of it. */
async function roundedLogits(at: string, { weights, ids }: FamilyGolden): Promise<Float32Array> {
  const text = readFileSync(join(at, 'config.json'), 'utf8').replace('"truncate": false', '"truncate": true');
  const architecture = resolveArchitecture(parseModelConfig(text, 'config.json'));
  const runner = openRunner(createCpuBackend(), architecture, sourceOf(weights), ROOMY);
  const { logits } = await runner.pass({ sequences: [{ ids, from: 0 }], output: 'logits' });
  runner.close();
  return logits[0]!;
}

// runs wherever llama.cpp's package exists, and fails where it should and does not (e2e/llama-cpp.ts)
describe.runIf(hasLlama)('in llama.cpp', () => {
  it.each(families)('%s', async (name) => {
    const at = folderOf(name);
    const family = await loadFamily(at, async (path) => Uint8Array.from(readFileSync(path)));
    const { architecture, weights, ids } = family;
    const planned = () =>
      planGguf({
        type: 'F32',
        name: 'golden',
        config: readFileSync(join(at, 'config.json'), 'utf8'),
        tokenizer: { tokenizer: byteLevelTokenizer(architecture.vocab) },
        tensors: [...weights].map(([key, { dtype, shape }]) => ({ name: key, dtype: dtype as 'F32', shape })),
      });
    if (REFUSED[name]) {
      expect(planned).toThrow(REFUSED[name]);
      return;
    }
    const plan = planned();
    const rounds = plan.warnings.some(({ message }) => /bounds of YaRN/.test(message));
    expect(rounds).toBe(name === 'gpt_oss');
    const logits = rounds ? await roundedLogits(at, family) : family.logits;
    const order = [...plan.tensors.keys()];
    const parts: Uint8Array[] = [ggufFile('m.gguf', plan, order).header];
    const write = async (bytes: Uint8Array) => void parts.push(bytes.slice());
    const encoder = ggufEncoder({ plan, names: order, engines: [createCpuBackend()], write });
    for (const key of order) {
      await encoder.append(weights.get(key)!.bytes.slice());
      await encoder.finishTensor();
    }
    const path = join(scratch, `${name}.gguf`);
    writeFileSync(path, Buffer.concat(parts));
    // beyond a window that its graph lacks llama.cpp sees more
    const windows = plainBlocks(architecture).flatMap(({ attention }) => attention.window ?? []);
    const seen = Math.min(ids.length, ...(GGUF_ARCHITECTURES[name]!.windows ? [] : windows));
    const model = llama().open(path);
    try {
      const there = logProbabilities(model.logits(ids.slice(0, seen)), architecture.vocab);
      const golden = logProbabilities(logits.slice(0, there.length), architecture.vocab);
      let furthest = 0;
      for (const [i, value] of there.entries()) furthest = Math.max(furthest, Math.abs(value - golden[i]!));
      // llama.cpp's GELU is one by tanh, from a table of halves
      const isGelu = GGUF_ARCHITECTURES[name]!.activations.some((each) => each.startsWith('gelu'));
      expect(furthest).toBeLessThan(isGelu ? 1e-2 : 1e-3);
    } finally {
      model.close();
    }
  });
});
