/** The command as a server of the Model Context Protocol, driven by the client of its SDK. */
import { readdirSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { beginning, expect, ROOT, readJson, SAMPLES, test, work } from './studio';

let client: Client;
test.beforeEach(async () => {
  client = new Client({ name: 'journey', version: '1' });
  const args = [join(ROOT, 'src/cli/amalgam.mjs'), 'mcp'];
  await client.connect(new StdioClientTransport({ command: process.execPath, args, cwd: work }));
});
test.afterEach(() => client.close());

const RECIPE = `merge_method: ties
base_model: ${SAMPLES}/base
models:
  - model: ${SAMPLES}/workshop
    parameters: { weight: 1.0, density: 0.2 }
`;

/** Processes that work in a folder. */
function processesIn(folder: string): number {
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return readlinkSync(`/proc/${pid}/cwd`) === folder;
    } catch {
      return false; // it has ended meanwhile
    }
  }).length;
}

test('a program plans, merges and evaluates; errors are words, a call can be canceled', async () => {
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['plan', 'merge', 'evaluate', 'search', 'compare', 'verify']),
  );
  // what a tool takes are arguments, not flags
  expect(JSON.stringify(tools)).not.toMatch(/--[a-z]/);
  expect(tools.find(({ name }) => name === 'merge')!.description).toContain(
    'With `resume` an interrupted merge',
  );
  expect(tools.find(({ name }) => name === 'merge')!.inputSchema.properties).toMatchObject({
    engine: { type: 'string', enum: ['auto', 'webgpu', 'cpu'] },
    resume: { type: 'boolean' },
  });
  const { resources } = await client.listResources();
  const { contents } = await client.readResource({
    uri: resources.find(({ name }) => name === 'methods')!.uri,
  });
  expect(contents[0]).toMatchObject({ text: expect.stringContaining('# ') });

  writeFileSync(join(work, 'recipe.yml'), RECIPE);
  const told: string[] = [];
  const call = async (name: string, values: Record<string, unknown>, signal?: AbortSignal) => {
    const { content, isError } = await client.callTool({ name, arguments: values }, undefined, {
      onprogress: ({ message }) => told.push(message ?? ''),
      ...(signal && { signal }),
    });
    return { text: (content as { text: string }[])[0]!.text, isError };
  };
  const plan = await call('plan', { subjects: ['recipe.yml'], json: true });
  expect(JSON.parse(plan.text)).toMatchObject({ clean: true });
  const merged = await call('merge', {
    subjects: ['recipe.yml'],
    out: 'merged',
    engine: 'cpu',
    report: 'report.json',
  });
  expect(merged).toMatchObject({ isError: false, text: expect.stringContaining('Merged 56') });
  expect(told.join('\n')).toContain('merging · ');
  expect(merged.text).not.toContain('merging · ');
  expect(readJson(work, 'report.json')).toMatchObject({ engine: 'cpu' });
  const text = beginning('common', 3000);
  const evaluated = await call('evaluate', { subjects: ['merged'], text: [text] });
  expect(evaluated.text).toMatch(/perplexity [\d.]+ ±/);

  expect(await call('merge', { subjects: ['recipe.yml'], out: 'merged' })).toMatchObject({
    isError: true,
    text: expect.stringContaining('already exists and is not an empty folder'),
  });
  expect(await call('plan', { subjects: ['recipe.yml'], levitate: true })).toMatchObject({
    isError: true,
    text: expect.stringMatching(/^plan has no option levitate\./),
  });
  await expect(call('levitate', { subjects: [] })).rejects.toThrow('There is no tool levitate.');

  const stop = new AbortController();
  const search = call('search', { subjects: ['recipe.yml'], budget: 300, text: [text] }, stop.signal);
  search.catch(() => undefined);
  await expect.poll(() => told.some((line) => !line.startsWith('merging'))).toBe(true);
  stop.abort();
  await expect(search).rejects.toThrow();
  expect((await call('plan', { subjects: ['recipe.yml'] })).isError).toBe(false);
  expect(readdirSync(work).sort()).toEqual(['common.txt', 'merged', 'recipe.yml', 'report.json']);

  // a client that goes takes with it what it has begun
  const left = call('search', { subjects: ['recipe.yml'], budget: 300, text: [text] });
  left.catch(() => undefined);
  await expect.poll(() => processesIn(work)).toBeGreaterThan(1);
  await client.close();
  await expect.poll(() => processesIn(work)).toBe(0);
});
