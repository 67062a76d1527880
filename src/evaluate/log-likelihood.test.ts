import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import {
  checkLogLikelihoods,
  LM_EVAL_FIXTURE,
  LOG_LIKELIHOOD_LIMIT,
  type LogLikelihoodGolden,
} from './log-likelihood.test.cases';
import { openSample, readText } from './sample.test.fixture';

const golden = JSON.parse(readFileSync(LM_EVAL_FIXTURE, 'utf8')) as {
  models: Record<string, LogLikelihoodGolden>;
};

test.each(Object.keys(golden.models))('%s: as lm-evaluation-harness', async (name) => {
  const config = JSON.parse(readText('base/tokenizer_config.json')) as object;
  const files = {
    tokenizer: readText('base/tokenizer.json'),
    config: JSON.stringify({ ...config, ...(name.includes('add_bos_token') && { add_bos_token: true }) }),
    hasSentencePiece: false,
  };
  const runner = openSample('base');
  const far = await checkLogLikelihoods(golden.models[name]!, files, runner);
  expect(far).toBeLessThanOrEqual(LOG_LIKELIHOOD_LIMIT);
  runner.close();
});
