/** An error as text to paste into a bug report: what failed and on what, no secrets, nothing out of a file. */

import type { ErrorReport } from '../../errors';
import { currentRun } from './runs';
import type { StudioState } from './studio-state';

/** Longest message that is repeated: a parser's may quote the file it could not read. */
const MOST = 600;

/** Access tokens as the Hub writes them (`hf_…`, OAuth JWTs), and whatever an Authorization header holds. */
const SECRETS =
  /\bhf_\w+|\beyJ[\w-]+\.[\w-]+\.[\w-]*|\b(Bearer|Basic)\s+\S+|([?&](code|token|state)=)[^&\s"]+/gi;

export function errorDetails(error: ErrorReport, state: StudioState): string {
  const { info: engine, choice } = state.engine;
  const run = currentRun(state);
  const lines = [
    `${error.code}: ${error.message.slice(0, MOST)}`,
    error.hint,
    '',
    `Amalgam ${engine?.version ?? '(engine not started)'}`,
    ...(engine
      ? [
          `WebGPU: ${engine.webgpu.available ? engine.webgpu.adapter : (engine.webgpu.why ?? 'none')}`,
          `Engine: ${choice}, storage ${engine.storage.available ? 'there' : 'not there'}`,
        ]
      : []),
    `Browser: ${globalThis.navigator?.userAgent ?? 'none'}`,
    ...(run?.progress
      ? [`Stage: ${run.progress.phase}, ${run.progress.tensorsDone} of ${run.progress.tensors}`]
      : []),
    `Recipe: ${JSON.stringify(run?.recipe ?? state.recipe)}`,
  ];
  return lines
    .join('\n')
    .replace(SECRETS, (_, scheme?: string, key?: string) => `${key ?? scheme ?? ''}[removed]`);
}
