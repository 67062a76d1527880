/** Where models come from, by a fake Hub: the family of a merge and what its licenses forbid. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseDocument } from 'yaml';
import { startFakeHub } from '../fake-hub';
import { amalgam, expect, readJson, SAMPLES, test, work } from './studio';

test('a family with licenses that contradict: said before the merge, in the card, by verify and in its JSON', async () => {
  const card = (text: string) => `---\n${text}\n---\n# A model\n`;
  const based = (base: string, license: string) => card(`license: ${license}\nbase_model: ${base}`);
  const files = async (name: string, readme: string) => ({
    ...Object.fromEntries(
      readdirSync(join(SAMPLES, name)).map((file) => [
        file,
        Uint8Array.from(readFileSync(join(SAMPLES, name, file))),
      ]),
    ),
    'README.md': readme,
  });
  const models = [
    { id: 'them/oldest', files: { 'README.md': card('license: cc-by-nc-4.0') }, gated: 'manual' as const },
    { id: 'them/middle', files: { 'README.md': based('them/oldest', 'other\nlicense_name: house rules') } },
    { id: 'them/base', files: await files('base', based('them/middle', 'apache-2.0')) },
    { id: 'them/tuned', files: await files('workshop', based('[them/base, them/gone]', 'apache-2.0')) },
  ];
  const own = await startFakeHub({ models });
  try {
    const where = ['--hub', own.url, '--cache', join(work, 'cache'), '--quiet'];
    const file = join(work, 'family.yml');
    writeFileSync(
      file,
      'merge_method: linear\nmodels:\n- {model: them/base, parameters: {weight: 1}}\n- {model: them/tuned, parameters: {weight: 1}}\n',
    );
    const planned = await amalgam(['plan', file, ...where]);
    expect(planned, planned.stderr).toMatchObject({ code: 0 });
    expect(planned.stdout).toMatch(
      /family +them\/tuned \(apache-2\.0, merge\)\n +them\/base \(apache-2\.0, finetune\)\n +them\/middle \(other: house rules, finetune\)\n +them\/oldest \(cc-by-nc-4\.0\)\n +them\/gone \(gone or private\)/,
    );
    const words =
      'them/tuned says apache-2.0, but comes from them/oldest (cc-by-nc-4.0): it allows nothing commercial.';
    expect(planned.stdout).toContain(`warning: ${words}`);
    expect(planned.stdout).toContain('Nothing is known of them/gone');

    const out = join(work, 'merged');
    const merged = await amalgam(['merge', file, '--out', out, ...where]);
    expect(merged, merged.stderr).toMatchObject({ code: 0, stderr: expect.stringContaining(words) });
    const written = readFileSync(join(out, 'README.md'), 'utf8');
    // its own license would be one that an ancestor forbids
    expect(parseDocument(written.split('---\n')[1]!).toJS()).not.toHaveProperty('license');
    expect(written).toContain('* `them/oldest`: cc-by-nc-4.0\n');
    expect(written).toMatch(/^them\/tuned says apache-2\.0, but comes from them\/oldest/m);

    // somebody publishes it as free for everything
    const claimed = written.replace('library_name:', 'license: mit\nlibrary_name:');
    await own.push({
      id: 'them/merged',
      files: {
        ...Object.fromEntries(
          readdirSync(out).map((name) => [name, Uint8Array.from(readFileSync(join(out, name)))]),
        ),
        'README.md': claimed,
      },
    });
    writeFileSync(join(work, 'card.md'), claimed);
    const json = ['verify', 'them/merged', '--json', '--card', join(work, 'card.md'), ...where];
    const verified = await amalgam(json);
    const result = JSON.parse(verified.stdout);
    const hashes = readJson(out, 'amalgam-hashes.json');
    expect(result).toMatchObject({
      verdict: 'other files',
      files: { missing: [], differing: ['README.md'], unlisted: [] },
      tensors: { all: 56, near: 56, same: 56 },
      outputs: { 'model.safetensors': hashes.outputs['model.safetensors'] },
      inputs: hashes.inputs,
      uncheckedInputs: [],
    });
    expect(result.family.map(({ id }: { id: string }) => id).sort()).toEqual(
      ['base', 'gone', 'merged', 'middle', 'oldest', 'tuned'].map((name) => `them/${name}`),
    );
    expect(result.licenses.map(({ message }: { message: string }) => message)).toContain(
      'them/merged says mit, but comes from them/oldest (cc-by-nc-4.0): it allows nothing commercial.',
    );
    const once = readFileSync(join(work, 'card.md'), 'utf8');
    expect(once.startsWith(claimed.trimEnd())).toBe(true);
    expect(once).toContain('"verdict": "other files"');
    await amalgam(json);
    expect(readFileSync(join(work, 'card.md'), 'utf8').split('## Verified')).toHaveLength(2);
  } finally {
    await own.close();
  }
});
