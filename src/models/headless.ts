import type { Architecture } from './architecture';
import { tensorsIn } from './claim';
import { scoreTensors } from './score-head';

/** The architecture of a model of which the last stream is wanted, whether it was saved with a head for words, for scores or without. */
export function withoutHead({ final, unused = [], ...body }: Architecture): Architecture {
  const { norm, head, tied, ...rest } = final;
  const own = tensorsIn(rest).map(({ name }) => name);
  return {
    ...body,
    final: { ...(norm && { norm }), head: body.embedding.token, tied: true, divisor: 1 },
    unused: [...unused, ...own, ...(tied ? [] : [head]), ...scoreTensors(body.modelType)],
  };
}
