import base from './vitest.config.ts';
for (const p of (base as any).test.projects) if (p.test.name !== 'browser') { p.test.setupFiles.unshift('/tmp/suite/meter.ts'); p.test.pool='forks'; p.test.maxWorkers=1; p.test.fileParallelism=false; }
export default base;
