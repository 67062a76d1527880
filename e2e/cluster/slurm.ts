/**
 * A merge as a job array of a real Slurm on this machine (Debian: slurm-wlm, munge), with `hosting/slurm/merge.sbatch`: one node
 * is killed in the middle of its part, and the queue is asked for one part again when all is over. Every file has to be that of one
 * process, byte for byte.
 *
 *     npm run test:slurm
 *
 * Before that it prints seconds for 2, 4 and 8 parts. Needs root: a node of Slurm starts jobs as their user.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import process from 'node:process';
import { setTimeout as wait } from 'node:timers/promises';
import { checkpoint, QWEN_05B } from '../bench/checkpoints';
import { treeHashOfFile } from '../tree-hash';

const PROJECT = resolve(import.meta.dirname, '../..');
const SCRIPT = join(PROJECT, 'hosting/slurm/merge.sbatch');
const NODES = 4;
/** Seconds without a word after which Slurm takes a node for dead. */
const NODE_TIMEOUT = 10;

const work = realpathSync(mkdtempSync(join(tmpdir(), 'amalgam-slurm-')));
const cluster = join(work, 'cluster');
const env = {
  ...process.env,
  SLURM_CONF: join(cluster, 'slurm.conf'),
  AMALGAM: `${process.execPath} ${join(PROJECT, 'src/cli/amalgam.mjs')}`,
  AMALGAM_CACHE: join(work, 'cache'),
};
const daemons: ChildProcess[] = [];

function start(program: string, ...args: string[]): ChildProcess {
  const child = spawn(program, args, { env, stdio: 'ignore' });
  daemons.push(child);
  return child;
}

function ask(program: string, ...args: string[]): string {
  return execFileSync(program, args, { env, cwd: work, encoding: 'utf8' }).trim();
}

/** Waits until it holds. @throws Error after `seconds` */
async function until(what: string, holds: () => boolean, seconds = 300): Promise<void> {
  const end = performance.now() + seconds * 1000;
  while (!holds()) {
    if (performance.now() > end) throw new Error(`${what}: not after ${seconds} s; ${inQueue()}`);
    await wait(200);
  }
}

/** Controller and nodes of a cluster that lives below `cluster`, its nodes by number. */
async function startCluster(): Promise<ChildProcess[]> {
  const host = hostname();
  mkdirSync(join(cluster, 'state'), { recursive: true });
  const key = join(cluster, 'munge.key');
  writeFileSync(key, randomBytes(1024), { mode: 0o600 });
  const socket = join(cluster, 'munge.socket');
  const own = (name: string) => join(cluster, `munge.${name}`);
  start(
    'munged',
    ...['--foreground', '--force', `--key-file=${key}`, `--socket=${socket}`, `--pid-file=${own('pid')}`],
    ...[`--log-file=${own('log')}`, `--seed-file=${own('seed')}`],
  );
  await until('munged', () => existsSync(socket), 20);
  const nodes = Array.from({ length: NODES }, (_, i) => ({ name: `node${i + 1}`, port: 17_011 + i }));
  const settings = {
    ...{ ClusterName: 'amalgam', SlurmctldHost: `${host}(127.0.0.1)`, SlurmctldPort: 17_000 },
    ...{ SlurmUser: 'root', SlurmdUser: 'root', AuthType: 'auth/munge', AuthInfo: `socket=${socket}` },
    ...{ CredType: 'cred/munge', StateSaveLocation: join(cluster, 'state') },
    ...{ SlurmdSpoolDir: join(cluster, 'spool-%n'), SlurmctldPidFile: join(cluster, 'controller.pid') },
    ...{ SlurmdPidFile: join(cluster, '%n.pid'), SlurmctldLogFile: join(cluster, 'controller.log') },
    ...{ SlurmdLogFile: join(cluster, '%n.log'), ProctrackType: 'proctrack/linuxproc' },
    ...{ TaskPlugin: 'task/none', SwitchType: 'switch/none', MpiDefault: 'none' },
    ...{ SelectType: 'select/cons_tres', SelectTypeParameters: 'CR_CPU', ReturnToService: 2 },
    ...{ SlurmdTimeout: NODE_TIMEOUT, KillWait: 5, JobRequeue: 1, SlurmdParameters: 'config_overrides' },
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}`);
  for (const { name, port } of nodes) {
    mkdirSync(join(cluster, `spool-${name}`));
    lines.push(`NodeName=${name} NodeHostname=${host} NodeAddr=127.0.0.1 Port=${port} CPUs=1 State=UNKNOWN`);
  }
  lines.push('PartitionName=all Nodes=ALL Default=YES State=UP');
  writeFileSync(env.SLURM_CONF, `${lines.join('\n')}\n`);
  writeFileSync(join(cluster, 'cgroup.conf'), 'CgroupPlugin=cgroup/v1\nIgnoreSystemd=yes\n');
  start('slurmctld', '-D');
  const started = nodes.map(({ name }) => start('slurmd', '-D', '-N', name));
  await until('idle nodes', () => ask('sinfo', '-h', '-t', 'idle', '-o', '%D') === String(NODES), 60);
  return started;
}

function submit(...args: string[]): string {
  return ask('sbatch', '--parsable', ...args);
}

function inQueue(): string {
  return ask('squeue', '-h', '-o', '%i %T %N %r');
}

/** Ends a node as a power cut does: first what would tell of the end of the others, then what its jobs have started. */
function killNode(daemon: ChildProcess, node: string): void {
  daemon.kill('SIGKILL');
  const started = readdirSync('/proc').filter((pid) => {
    const environment = /^\d+$/.test(pid) ? read(`/proc/${pid}/environ`) : '';
    return environment.includes(`SLURMD_NODENAME=${node}`) && environment.includes(cluster);
  });
  const steps = new Set(
    started.map((pid) => /^PPid:\s*(\d+)$/m.exec(read(`/proc/${pid}/status`))?.[1] ?? ''),
  );
  const isStep = (pid: string) => read(`/proc/${pid}/cmdline`).startsWith('slurmstepd');
  for (const pid of [...[...steps].filter(isStep), ...started]) process.kill(Number(pid), 'SIGKILL');
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return ''; // it has ended meanwhile
  }
}

function hashesOf(folder: string): Record<string, string> {
  return Object.fromEntries(readdirSync(folder).map((name) => [name, treeHashOfFile(join(folder, name))]));
}

function requireSame(out: string, whole: Readonly<Record<string, string>>): void {
  const found = hashesOf(out);
  for (const name of new Set([...Object.keys(found), ...Object.keys(whole)]))
    if (found[name] !== whole[name]) throw new Error(`${name} is not that of one process`);
}

/** Submits all parts and the job that joins them. @returns their number in the queue */
function submitAll(out: string, parts: number): string {
  const prepared = submit(SCRIPT, 'prepare', 'recipe.yml');
  const array = ['--array', `1-${parts}`, '--dependency', `afterok:${prepared}`];
  const written = submit(...array, SCRIPT, 'part', 'recipe.yml', out, String(parts));
  submit('--dependency', `afterok:${written}`, SCRIPT, 'join', out);
  return written;
}

async function main(): Promise<void> {
  const cache = join(PROJECT, 'node_modules', '.cache', 'amalgam-bench');
  mkdirSync(cache, { recursive: true });
  const [base, ...models] = await Promise.all([0, 1, 2].map((i) => checkpoint(cache, QWEN_05B, i)));
  const recipe = {
    ...{ merge_method: 'ties', base_model: base, dtype: 'bfloat16' },
    models: models.map((model) => ({ model, parameters: { weight: 0.7, density: 0.2 } })),
    ...{ parameters: { semantics: 'paper' }, amalgam: { shard_bytes: 60_000_000 } },
  };
  writeFileSync(join(work, 'recipe.yml'), JSON.stringify(recipe));
  const amalgam = (...args: string[]): number => {
    const begun = performance.now();
    const options = { cwd: work, env, stdio: 'ignore' as const };
    execFileSync(process.execPath, [join(PROJECT, 'src/cli/amalgam.mjs'), ...args], options);
    return (performance.now() - begun) / 1000;
  };
  const cached = ['--cache', env.AMALGAM_CACHE];
  const one = amalgam('merge', 'recipe.yml', '--out', 'merged');
  console.log(`one process: ${one.toFixed(1)} s`);
  renameSync(join(work, 'merged'), join(work, 'whole'));
  const whole = hashesOf(join(work, 'whole'));
  // one after the other, each with this machine to itself, as it would have its own
  const prepared = amalgam('merge', 'recipe.yml', '--prepare', ...cached);
  for (const parts of [2, 4, 8]) {
    const seconds = Array.from({ length: parts }, (_, i) =>
      amalgam('merge', 'recipe.yml', '--out', 'merged', '--part', `${i + 1}/${parts}`, ...cached),
    );
    const joined = amalgam('join', 'merged');
    const longest = Math.max(...seconds);
    console.log(
      `${parts} parts: prepared in ${prepared.toFixed(1)} s, longest part ${longest.toFixed(1)}, joined in ${joined.toFixed(1)}`,
    );
    requireSame(join(work, 'merged'), whole);
    rmSync(join(work, 'merged'), { recursive: true });
  }
  rmSync(env.AMALGAM_CACHE, { recursive: true });

  const nodes = await startCluster();
  // a node that dies while it writes its part
  const array = submitAll('merged', NODES);
  const partial = () =>
    readdirSync(work).find(
      (name) =>
        name.startsWith('.merged.part-2-of-') &&
        read(join(work, name, '.amalgam-run.jsonl')).includes('"checkpoint"'),
    );
  await until('the second part is being written', () => partial() !== undefined);
  const node = ask('squeue', '-h', '-j', `${array}_2`, '-o', '%N');
  killNode(nodes[Number(node.slice('node'.length)) - 1]!, node);
  console.log(`killed ${node} in part 2`);
  const second = join(work, 'merged.part-2-of-4');
  if (existsSync(second)) throw new Error('part 2 was finished before its node was killed');
  await until(
    'Slurm sees that the node is dead',
    () => ask('sinfo', '-h', '-n', node, '-o', '%t') === 'down*',
    60,
  );
  await until('all parts and their join', () => inQueue() === '');
  requireSame(join(work, 'merged'), whole);
  console.log('the same bytes after a node was killed');

  // a part that is lost once all are there, and submitted again
  rmSync(join(work, 'merged'), { recursive: true });
  const again = submit('--array', `1-${NODES}`, SCRIPT, 'part', 'recipe.yml', 'merged', String(NODES));
  await until(`parts of ${again}`, () => inQueue() === '');
  rmSync(second, { recursive: true });
  const missing = submit('--wait-all-nodes=0', SCRIPT, 'join', 'merged');
  await until('a join without one part', () => inQueue() === '');
  if (existsSync(join(work, 'merged'))) throw new Error('joined without part 2');
  if (!read(join(work, `slurm-${missing}.out`)).includes('Part 2 of 4 is not there'))
    throw new Error('no word on part 2');
  const two = submit('--array', '2', SCRIPT, 'part', 'recipe.yml', 'merged', String(NODES));
  submit('--dependency', `afterok:${two}`, SCRIPT, 'join', 'merged');
  await until('part 2 again', () => inQueue() === '');
  requireSame(join(work, 'merged'), whole);
  console.log('the same bytes after a part was submitted again');
}

try {
  await main();
} catch (thrown) {
  for (const name of readdirSync(work).filter((file) => file.endsWith('.out')))
    console.error(`${name}: ${read(join(work, name)).slice(-1000)}`);
  throw thrown;
} finally {
  for (const daemon of daemons.reverse()) daemon.kill('SIGTERM');
  await wait(2000);
  for (const daemon of daemons) daemon.kill('SIGKILL');
  rmSync(work, { recursive: true, force: true, maxRetries: 5 });
}
