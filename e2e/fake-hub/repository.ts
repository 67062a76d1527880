import { createHash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { parseDocument } from 'yaml';
import { DiskFile } from '../../src/host/node/storage';

/** A model, or a dataset, to serve. Its files are a folder on disk or given by path; disk files are read as they are asked for. */
export interface FakeModel {
  id: string;
  /** Served under `/datasets/…` and `/api/datasets/…`. */
  dataset?: boolean;
  files: string | Record<string, Uint8Array<ArrayBuffer> | string>;
  tags?: string[];
  private?: boolean;
  gated?: 'auto' | 'manual';
  downloads?: number;
  likes?: number;
  updatedAt?: string;
}

export interface FakeFile {
  path: string;
  content: Blob;
  /** git blob sha1: of the content, or of the pointer for an LFS file. */
  oid: string;
  lfs?: { oid: string; size: number; pointerSize: number };
}

/** A repository: every commit it ever had, and its branches. */
export interface FakeRepository {
  model: FakeModel;
  tags: string[];
  /** Front matter of its card. */
  cardData: Readonly<Record<string, unknown>>;
  safetensors?: { parameters: Record<string, number>; total: number };
  commits: Map<string, Map<string, FakeFile>>;
  refs: Map<string, string>;
}

/** Files of this size are in LFS on the Hub whatever their name. */
const LFS_BYTES = 10_000_000;

/** Reads the model and makes it the next commit on `main`; earlier commits of `previous` stay reachable. */
export async function commitModel(model: FakeModel, previous?: FakeRepository): Promise<FakeRepository> {
  const files = new Map<string, FakeFile>();
  for (const [path, content] of await contents(model.files)) files.set(path, await fakeFile(path, content));
  const commit = sha1(`${model.id}\n${[...files.values()].map((f) => `${f.oid} ${f.path}\n`).join('')}`);
  const safetensors = await countParameters(files);
  const cardData = await cardDataOf(files.get('README.md'));
  const said = [...cardTags(cardData, files), ...(model.tags ?? [])];
  const isLicensed = said.some((tag) => tag.startsWith('license:'));
  return {
    model,
    tags: [...(safetensors ? ['safetensors'] : []), ...(isLicensed ? [] : ['license:mit']), ...new Set(said)],
    cardData,
    ...(safetensors ? { safetensors } : {}),
    commits: new Map([...(previous?.commits ?? []), [commit, files]]),
    refs: new Map([...(previous?.refs ?? []), ['main', commit]]),
  };
}

/** The front matter of a card; empty where it cannot be read. */
async function cardDataOf(card: FakeFile | undefined): Promise<Record<string, unknown>> {
  const front = /^---\r?\n([\s\S]*?)\r?\n---/.exec((await card?.content.text()) ?? '')?.[1];
  const said: unknown = front === undefined ? undefined : parseDocument(front).toJS();
  return typeof said === 'object' && said !== null ? { ...said } : {};
}

/** Tags that the Hub makes of a card (docs/hub/model-cards): license, base models and how they were used, where it says or shows. */
function cardTags(
  cardData: Readonly<Record<string, unknown>>,
  files: ReadonlyMap<string, FakeFile>,
): string[] {
  const texts = (value: unknown) =>
    (Array.isArray(value) ? value : [value]).filter((one) => typeof one === 'string');
  const bases = texts(cardData.base_model);
  const shown = files.has('adapter_config.json') ? 'adapter' : bases.length > 1 ? 'merge' : 'finetune';
  const [relation = shown] = texts(cardData.base_model_relation);
  return [
    ...texts(cardData.license).map((license) => `license:${license}`),
    ...bases.flatMap((base) => [`base_model:${base}`, `base_model:${relation}:${base}`]),
  ];
}

/** Commit of a branch or of a commit sha; `HEAD` is `main`. */
export function resolveRevision(repository: FakeRepository, revision: string): string | undefined {
  if (repository.commits.has(revision)) return revision;
  return repository.refs.get(revision === 'HEAD' ? 'main' : revision);
}

/** Every file by path, in the order of the paths as git lists them. */
async function contents(files: FakeModel['files']): Promise<[path: string, content: Blob][]> {
  const list: [string, Blob][] = [];
  if (typeof files === 'string') {
    for (const entry of await readdir(files, { recursive: true, withFileTypes: true })) {
      const onDisk = join(entry.parentPath, entry.name);
      if (entry.isFile())
        list.push([relative(files, onDisk).split(sep).join('/'), new DiskFile(onDisk, entry.name)]);
    }
  } else {
    for (const [path, content] of Object.entries(files)) list.push([path, new Blob([content])]);
  }
  return list.sort(([a], [b]) => (a < b ? -1 : 1));
}

async function fakeFile(path: string, content: Blob): Promise<FakeFile> {
  if (!/\.(safetensors|bin|parquet)$/.test(path) && content.size < LFS_BYTES) {
    return { path, content, oid: gitBlobSha1(Buffer.from(await content.arrayBuffer())) };
  }
  const hash = createHash('sha256');
  for await (const chunk of content.stream()) hash.update(chunk);
  const oid = hash.digest('hex');
  const pointer = Buffer.from(
    `version https://git-lfs.github.com/spec/v1\noid sha256:${oid}\nsize ${content.size}\n`,
  );
  return {
    path,
    content,
    oid: gitBlobSha1(pointer),
    lfs: { oid, size: content.size, pointerSize: pointer.length },
  };
}

/** Elements per dtype over all safetensors headers, as the Hub shows them. */
async function countParameters(files: Map<string, FakeFile>): Promise<FakeRepository['safetensors']> {
  const parameters: Record<string, number> = {};
  let total = 0;
  let found = false;
  for (const { path, content } of files.values()) {
    if (!path.endsWith('.safetensors')) continue;
    found = true;
    for (const [dtype, elements] of await headerElements(content)) {
      parameters[dtype] = (parameters[dtype] ?? 0) + elements;
      total += elements;
    }
  }
  return found ? { parameters, total } : undefined;
}

async function headerElements(content: Blob): Promise<[dtype: string, elements: number][]> {
  const start = new DataView(await content.slice(0, 8).arrayBuffer());
  if (start.byteLength < 8) return [];
  const end = 8 + Number(start.getBigUint64(0, true));
  if (end > content.size) return [];
  const header: Record<string, { dtype: string; shape: number[] }> = JSON.parse(
    await content.slice(8, end).text(),
  );
  return Object.entries(header)
    .filter(([name]) => name !== '__metadata__')
    .map(([, { dtype, shape }]) => [dtype, shape.reduce((a, b) => a * b, 1)]);
}

function gitBlobSha1(bytes: Buffer): string {
  return createHash('sha1').update(`blob ${bytes.length}\0`).update(bytes).digest('hex');
}

function sha1(text: string): string {
  return createHash('sha1').update(text).digest('hex');
}
