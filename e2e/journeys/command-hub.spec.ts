/** The headless command and the Hub: what was downloaded stays, what another program downloaded is taken, and a result is pushed. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { parseDocument } from 'yaml';
import { buildSafetensorsHeader } from '../../src/formats/safetensors-write';
import { type FakeHub, READER_TOKEN, sampleModels, startFakeHub, WRITER_TOKEN } from '../fake-hub';
import { cardErrors } from '../fake-hub/model-card';
import { readSafetensors } from './merged-folder';
import { amalgam, expect, ROOT, readJson, recipeFile, SAMPLES, test, work } from './studio';

let hub: FakeHub;
test.beforeEach(async () => {
  hub = await startFakeHub({ models: sampleModels(SAMPLES), pieceBytes: 1_000_000 });
});
test.afterEach(() => hub.close());

function recipe(): string {
  return recipeFile(
    'merge_method: linear\nmodels:\n- {model: amalgam/base, parameters: {weight: 1}}\n- {model: amalgam/workshop, parameters: {weight: 1}}\n',
  );
}

const weightRequests = () => hub.requests.filter((r) => r.server === 'cdn' && r.method === 'GET');

test('the second merge, verify and evaluate ask for no weights', async () => {
  const where = ['--hub', hub.url, '--cache', join(work, 'cache')];
  const first = await amalgam(['merge', recipe(), '--out', join(work, 'first'), ...where]);
  expect(first, first.stderr).toMatchObject({ code: 0 });
  const downloads = weightRequests().length;
  expect(downloads).toBeGreaterThan(0);

  const second = await amalgam(['merge', recipe(), '--out', join(work, 'second'), ...where, '--quiet']);
  expect(second, second.stderr).toMatchObject({ code: 0 });
  expect(second.stderr).not.toContain('tensors ·');
  expect((await amalgam(['verify', join(work, 'second'), ...where])).code).toBe(0);
  expect(weightRequests()).toHaveLength(downloads);
  const bytes = (name: string) => readFileSync(join(work, name, 'model.safetensors'));
  expect(bytes('second').equals(bytes('first'))).toBe(true);
});

test('verify looks at everything that was written, with --hashes at nothing else; HF_ENDPOINT is the hub', async () => {
  const env = { HF_ENDPOINT: `${hub.url}/`, HF_HUB_CACHE: join(work, 'none') };
  const where = ['--cache', join(work, 'cache'), '--quiet'];
  const out = join(work, 'merged');
  const merged = await amalgam(['merge', recipe(), '--out', out, '--gguf', 'Q8_0', ...where], env);
  expect(merged, merged.stderr).toMatchObject({ code: 0 });
  expect(readdirSync(out).filter((name) => name.startsWith('.'))).toEqual([]);
  const whole = await amalgam(['verify', out, ...where], env);
  expect(whole, whole.stderr).toMatchObject({ code: 0, stdout: expect.stringContaining('The bytes agree') });

  const gguf = readdirSync(out).find((name) => name.endsWith('.gguf'))!;
  const flipped = (name: string) => {
    const bytes = readFileSync(join(out, name));
    bytes[bytes.length - 5]! ^= 1;
    writeFileSync(join(out, name), bytes);
  };
  const config = readFileSync(join(out, 'config.json'), 'utf8');
  const changes: [string, () => void, () => void, RegExp][] = [
    [gguf, () => flipped(gguf), () => flipped(gguf), /1\sfile with other bytes than were written: \S+\.gguf/],
    [
      'config.json',
      () => writeFileSync(join(out, 'config.json'), config.replace(/("rope_theta": )[\d.e]+/, '$17')),
      () => writeFileSync(join(out, 'config.json'), config),
      /1\sfile with other bytes than were written: config\.json/,
    ],
    [
      'an unlisted one',
      () => writeFileSync(join(out, 'modeling.py'), ''),
      () => rmSync(join(out, 'modeling.py')),
      /1\sfile that the merge did not write: modeling\.py/,
    ],
    [
      'a missing one',
      () => renameSync(join(out, 'tokenizer.json'), join(work, 'tokenizer.json')),
      () => renameSync(join(work, 'tokenizer.json'), join(out, 'tokenizer.json')),
      /1\sfile missing: tokenizer\.json/,
    ],
  ];
  for (const [what, change, back, words] of changes) {
    change();
    const alone = await amalgam(['verify', out, '--hashes']);
    expect(alone.code, what).toBe(1);
    expect(alone.stdout, what).toMatch(words);
    back();
  }
  writeFileSync(join(out, 'config.json'), config.replace(/("rope_theta": )[\d.e]+/, '$17'));
  const differs = await amalgam(['verify', out, ...where], env);
  expect(differs.code).toBe(1);
  expect(differs.stdout).toMatch(/The bytes differ, but those of no tensor\.\n.*config\.json/);
  writeFileSync(join(out, 'config.json'), config);
  expect(await amalgam(['verify', out, '--hashes'])).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('as they were written'),
  });
});

test('verify of a merge on the Hub: byte for byte, within one rounding of another program, or not by that recipe', async () => {
  const where = ['--cache', join(work, 'cache'), '--quiet', '--engine', 'cpu'];
  const out = join(work, 'merged');
  const file = recipe();
  expect((await amalgam(['merge', file, '--out', out, '--hub', hub.url, ...where])).code).toBe(0);

  // as mergekit publishes: files cut elsewhere, no metadata of ours; one number is a step away, another three
  const { tensors } = readSafetensors(readFileSync(join(out, 'model.safetensors')));
  const names = [...tensors.keys()];
  const moved = (name: string) => {
    const bytes = Uint8Array.from(tensors.get(name)!.bytes);
    const steps = name === 'model.norm.weight' ? 3 : name === names[1] ? 1 : 0;
    bytes[0]! += steps;
    expect(bytes[0]).toBeGreaterThanOrEqual(steps); // no carry
    return bytes;
  };
  const shard = (some: readonly string[]) => {
    const told = some.map((name) => ({ name, ...tensors.get(name)! }));
    const header = buildSafetensorsHeader(
      told.map(({ name, shape, bytes }) => ({
        ...{ name, dtype: 'BF16' as const, shape },
        byteLength: bytes.length,
      })),
      { format: 'pt' },
    );
    return Uint8Array.from(Buffer.concat([header, ...some.map(moved)]));
  };
  const config = readFileSync(join(out, 'config.json'), 'utf8');
  const foreign = (text: string) => ({
    'config.json': config,
    'mergekit_config.yml': text,
    'model-00001-of-00002.safetensors': shard(names.slice(0, 20)),
    'model-00002-of-00002.safetensors': shard(names.slice(20)),
    'model.safetensors.index.json': JSON.stringify({
      metadata: {},
      weight_map: Object.fromEntries(
        names.map((name, i) => [name, `model-0000${i < 20 ? 1 : 2}-of-00002.safetensors`]),
      ),
    }),
  });
  const text = readFileSync(file, 'utf8');
  const other = await startFakeHub({
    models: [
      ...sampleModels(SAMPLES),
      { id: 'amalgam/merged', files: out },
      { id: 'them/merged', files: foreign(text) },
      { id: 'them/another', files: foreign(text.replace('weight: 1}', 'weight: 7}')) },
    ],
  });
  try {
    const verify = (id: string) => amalgam(['verify', id, '--hub', other.url, ...where]);
    const own = await verify('amalgam/merged');
    expect(own, own.stderr).toMatchObject({ code: 0, stdout: expect.stringContaining('The bytes agree') });
    const reads = other.requests.filter(({ path, range }) => path.includes('merged/') && range !== undefined);
    expect(reads.length).toBeGreaterThan(0);
    // it was compared as it came: the cache has what is merged, twice the same
    expect(readdirSync(join(work, 'cache/blobs')).filter((name) => !name.includes('.'))).toHaveLength(2);
    const theirs = await verify('them/merged');
    expect(theirs.stdout).toMatch(
      /within one rounding in 55\sof 56\stensors, 54 of them to the bit; model\.norm\.weight by up to 3\ssteps/,
    );
    expect((await verify('them/another')).stdout).toContain('Not this recipe: other weights in');
    const none = await verify('amalgam/workshop');
    expect(none.stderr).toContain('does not say how it was merged');
  } finally {
    await other.close();
  }
});

test('early errors end in words and leave nothing, with downloads in the cache and in folders that cannot be used', async () => {
  const cache = join(work, 'cache');
  const where = ['--hub', hub.url, '--cache', cache, '--quiet'];
  const out = join(work, 'merged');
  expect((await amalgam(['merge', recipe(), '--out', join(work, 'first'), ...where])).code).toBe(0);
  writeFileSync(join(work, 'taken.json'), '');
  writeFileSync(join(work, 'broken.yml'), 'merge_method: nothing\n');
  const cases: [string, string[], Record<string, string>?][] = [
    ['no recipe', ['merge', join(work, 'none.yml'), '--out', out, ...where]],
    ['a broken recipe', ['merge', join(work, 'broken.yml'), '--out', out, ...where]],
    [
      'a report that is there',
      ['merge', recipe(), '--out', out, '--report', join(work, 'taken.json'), ...where],
    ],
    [
      'a report without a folder',
      ['merge', recipe(), '--out', out, '--report', join(work, 'a/b.json'), ...where],
    ],
    [
      'a report where nobody can write',
      ['merge', recipe(), '--out', out, '--report', '/proc/report.json', ...where],
    ],
    ['an output that is there', ['merge', recipe(), '--out', join(work, 'first'), ...where]],
    ['no such model', ['evaluate', 'amalgam/nothing', '--text', recipe(), ...where]],
    ['no such hub', ['plan', recipe(), '--hub', 'http://127.0.0.1:9', '--cache', cache]],
    ['an odd endpoint', ['plan', recipe(), '--cache', cache], { HF_ENDPOINT: 'nowhere' }],
    [
      'a cache that is a file',
      ['merge', recipe(), '--out', out, '--hub', hub.url, '--cache', join(work, 'taken.json')],
    ],
    [
      'no folder for anything',
      ['plan', recipe(), '--hub', hub.url, '--cache', '/proc/cache'],
      { TMPDIR: '/proc' },
    ],
    ['no token', ['push', join(work, 'first'), 'writer/first', '--hub', hub.url]],
  ];
  for (const [what, args, env] of cases) {
    const { code, stderr } = await amalgam(args, env);
    expect([1, 2], `${what}: ${stderr}`).toContain(code);
    expect(stderr, what).not.toMatch(/^ +at |node:internal|Node\.js v|Something unexpected/m);
    expect(stderr.trim().split('\n').length, `${what}: ${stderr}`).toBeGreaterThan(1);
    // whoever is to give a token is told where
    expect(stderr.includes('access token') ? stderr : 'HF_TOKEN', what).toContain('HF_TOKEN');
    expect(
      readdirSync(work).filter((name) => name.startsWith('.') || name === 'merged'),
      what,
    ).toEqual([]);
  }
  // what needs no cache goes on without
  const local = join(work, 'local.yml');
  const names = ['base', 'workshop'].map(
    (name) => `- {model: ${join(SAMPLES, name)}, parameters: {weight: 1}}`,
  );
  writeFileSync(local, `merge_method: linear\nmodels:\n${names.join('\n')}\n`);
  const unusable = ['--cache', join(work, 'taken.json'), '--quiet'];
  const merged = await amalgam(['merge', local, '--out', out, ...unusable], { TMPDIR: work });
  expect(merged, merged.stderr).toMatchObject({ code: 0 });
});

/** A recipe of a model of this disk. */
function localRecipe(): string {
  const file = join(work, 'local.yml');
  writeFileSync(file, `merge_method: passthrough\nmodels: [{model: ${join(SAMPLES, 'base')}}]\n`);
  return file;
}

test('output that nobody reads ends the command without a word', async () => {
  const local = localRecipe();
  const out = join(work, 'merged');
  for (const args of [['--help'], ['plan', local], ['merge', local, '--out', out]]) {
    for (const closed of ['stdout', 'stderr'] as const) {
      const command = spawn(process.execPath, ['src/cli/amalgam.mjs', ...args], { cwd: ROOT });
      command[closed].destroy();
      let told = '';
      command[closed === 'stdout' ? 'stderr' : 'stdout'].on('data', (text) => {
        told += text;
      });
      const [code] = (await once(command, 'close')) as [number | null];
      expect([0, 1], `${args} without ${closed}: ${told}`).toContain(code);
      expect(told).not.toMatch(/EPIPE|unexpected|^ +at /m);
      // whole, or not there
      expect(readdirSync(work).filter((name) => name.startsWith('.'))).toEqual([]);
      if (existsSync(out)) expect(readdirSync(out)).toContain('model.safetensors');
      rmSync(out, { recursive: true, force: true });
    }
  }
});

test('output that takes no more ends the command in words', async () => {
  // /dev/full, which takes nothing, is Linux's alone; no other system has a file that is always full
  test.skip(process.platform !== 'linux', 'only Linux has a device that is always full');
  const full = spawn(process.execPath, ['src/cli/amalgam.mjs', 'plan', localRecipe()], {
    cwd: ROOT,
    stdio: ['ignore', openSync('/dev/full', 'w'), 'pipe'],
  });
  let words = '';
  full.stderr!.on('data', (text) => {
    words += text;
  });
  expect((await once(full, 'close'))[0]).toBe(1);
  expect(words).toContain('The standard output took no more');
});

test('models in the cache of huggingface_hub are taken from there, by their name on the Hub', async () => {
  const commit = '0123456789abcdef0123456789abcdef01234567';
  for (const name of ['base', 'workshop']) {
    const place = join(work, 'hf', `models--amalgam--${name}`);
    mkdirSync(join(place, 'refs'), { recursive: true });
    writeFileSync(join(place, 'refs/main'), commit);
    cpSync(join(SAMPLES, name), join(place, 'snapshots', commit), { recursive: true });
  }
  const out = join(work, 'merged');
  const { code, stderr } = await amalgam(['merge', recipe(), '--out', out], {
    HF_HUB_CACHE: join(work, 'hf'),
  });
  expect(code, stderr).toBe(0);
  expect(stderr).toContain('amalgam/base: commit 01234567 from the Hugging Face cache');
  const card = readFileSync(join(out, 'README.md'), 'utf8');
  expect(card).toMatch(/base_model:\n {2}- amalgam\/base\n {2}- amalgam\/workshop/);
  expect(card).not.toContain(work);
});

test('a result is pushed by merge --push and by push; a token that only reads is refused before the merge', async () => {
  const out = join(work, 'merged');
  const args = ['merge', recipe(), '--out', out, '--hub', hub.url, '--push', 'writer/merged'];
  const refused = await amalgam(args, { HF_TOKEN: READER_TOKEN });
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain('can only read');
  expect(weightRequests()).toHaveLength(0);

  const pushed = await amalgam([...args, '--private'], { HF_TOKEN: WRITER_TOKEN });
  expect(pushed, pushed.stderr).toMatchObject({ code: 0 });
  expect(pushed.stderr).toMatch(/writer\/merged was made: commit [0-9a-f]{8}/);
  const stored = await fetch(`${hub.url}/writer/merged/resolve/main/model.safetensors`, {
    headers: { Authorization: `Bearer ${WRITER_TOKEN}` },
  });
  expect(Buffer.from(await stored.arrayBuffer()).equals(readFileSync(join(out, 'model.safetensors')))).toBe(
    true,
  );
  expect((await fetch(`${hub.url}/writer/merged/resolve/main/config.json`)).status).toBe(401);

  // the card as the hub took it: models of the Hub alone, what they are to it, their license, and how to run it
  const readme = await fetch(`${hub.url}/writer/merged/resolve/main/README.md`, {
    headers: { Authorization: `Bearer ${WRITER_TOKEN}` },
  });
  const card = await readme.text();
  expect(parseDocument(card.split('---\n')[1]!).toJS()).toEqual({
    base_model: ['amalgam/base', 'amalgam/workshop'],
    base_model_relation: 'merge',
    library_name: 'transformers',
    license: 'mit',
    tags: ['merge', 'amalgam'],
  });
  expect(cardErrors(card)).toEqual([]);
  expect(card).toMatch(/^# \S/m);
  expect(card).toContain('## Use it');
  expect(card).not.toContain(work);

  const again = ['push', out, 'writer/merged', '--hub', hub.url];
  const kept = await amalgam(again, { HF_TOKEN: WRITER_TOKEN });
  expect(kept.code).toBe(1);
  expect(kept.stderr).toContain('--replace');
  const replaced = await amalgam([...again, '--replace', '--message', 'Again'], { HF_TOKEN: WRITER_TOKEN });
  expect(replaced, replaced.stderr).toMatchObject({ code: 0 });
});

test('says its version, how a verb is used, and what bash can complete', async () => {
  const { version } = readJson(ROOT, 'package.json');
  expect((await amalgam(['--version'])).stdout).toBe(`${version}\n`);
  const help = (await amalgam(['push', '--help'])).stdout;
  expect(help).toContain('push <folder> <owner/name>');
  expect(help).not.toContain('lora <lora>');
  const { stdout } = await amalgam(['completion']);
  const completed = await new Promise<string>((resolve) => {
    const script = `${stdout}\nCOMP_WORDS=(amalgam merge --gg); COMP_CWORD=2; _amalgam; echo "\${COMPREPLY[*]}"`;
    execFile('bash', ['-c', script], (_, words) => resolve(words.trim()));
  });
  expect(completed).toBe('--gguf --gguf-only');
});
