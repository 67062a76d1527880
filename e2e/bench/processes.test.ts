import process from 'node:process';
import { describe, expect, it } from 'vitest';
import { timeNode, timeProgram } from './processes';

describe('timed programs', () => {
  it('counts the memory and the processor time of a Node program, its threads’ too', async () => {
    const bytes = 2 ** 28;
    const thread = `const until = process.cpuUsage().user + 3e5;
      while (process.cpuUsage().user < until) for (let i = 0; i < 1e6; i++);`;
    const program = `
      const held = Buffer.alloc(${bytes}, 1);
      new (require('node:worker_threads').Worker)(${JSON.stringify(thread)}, { eval: true })
        .once('exit', () => process.exit(held[0] - 1));`;
    const { peakBytes, user, system, seconds } = await timeNode(['--eval', program], process.cwd());
    expect(peakBytes).toBeGreaterThan(bytes);
    expect(user).toBeGreaterThan(0.3);
    expect(system).toBeGreaterThan(0);
    expect(seconds).toBeGreaterThan(0);
  });

  it('fails with what the program said', async () => {
    const failing = ['--eval', 'console.error("no such model"); process.exit(3)'];
    await expect(timeNode(failing, process.cwd())).rejects.toThrow(/ended with 3.*no such model/);
    await expect(timeProgram(process.execPath, failing, process.cwd())).rejects.toThrow(/no such model/);
    await expect(timeProgram('no-such-program', [], process.cwd())).rejects.toThrow(/ENOENT/);
  });
});
