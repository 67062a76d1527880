/** What `compare` and `extract-lora` have in common: two models, and an output folder. */
import type { CompareProgress, ExtractLoraRequest } from '../tools/difference/report';
import type { WorkerCalls } from '../worker/calls';
import { openNamed, type Where } from './job';
import { openOutput, requireCommitted } from './output-folder';
import { withProgress } from './progress-printer';
import type { Place } from './verb';

export const TWO_MODELS = 'two models, the base and the fine-tune';

export interface BothCommand extends Where {
  out: string;
  request: Pick<ExtractLoraRequest, 'base' | 'finetuned' | 'engine'>;
}

type Both = Pick<ExtractLoraRequest, 'base' | 'finetuned' | 'destination'>;

/** Opens both models and the output folder, runs the job with progress, and sees that its folder is there. */
export async function withBoth<T>(
  { request, out, hub, cache }: BothCommand,
  place: Place,
  run: (calls: WorkerCalls, both: Both, onProgress: (progress: CompareProgress) => void) => Promise<T>,
): Promise<{ report: T; folder: string }> {
  const { folder, output } = await openOutput(out, place);
  const where = { ...(hub ? { hub } : {}), ...(cache ? { cache } : {}), engine: request.engine };
  const { refs, server, calls } = await openNamed([request.base, request.finetuned], place, where);
  const [base, finetuned] = refs;
  const destination = { kind: 'served', url: server.receiveOutput(output) } as const;
  const report = await withProgress((print) => run(calls, { base, finetuned, destination }, print));
  requireCommitted(output);
  return { report, folder };
}
