/** Log-likelihoods of a real pretrained model, as lm-evaluation-harness computes them; the sample's are in the repository. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createCpuBackend } from '../../src/backend/cpu/cpu-backend';
import {
  checkLogLikelihoods,
  LOG_LIKELIHOOD_LIMIT,
  type LogLikelihoodGolden,
} from '../../src/evaluate/log-likelihood.test.cases';
import { parseModelConfig } from '../../src/formats/model-config';
import { readTensors } from '../../src/forward/golden.test.fixture';
import { openRunner } from '../../src/forward/runner';
import { sourceOf } from '../../src/forward/runner.test.cases';
import { resolveArchitecture } from '../../src/models/resolution';
import { readBytes, readText, real, reference } from './reference';

const golden = JSON.parse(readText(reference, 'golden/lm-eval/loglikelihood.json')) as {
  models: Record<string, LogLikelihoodGolden>;
};
const folder = join(real, 'f32/base');

test.each(Object.keys(golden.models).filter((name) => name.includes('real')))('%s', async (name) => {
  const config = JSON.parse(readText(folder, 'tokenizer_config.json')) as object;
  const added = name.includes('add_bos_token') ? { add_bos_token: true } : {};
  const files = {
    tokenizer: readText(folder, 'tokenizer.json'),
    config: JSON.stringify({ ...config, ...added }),
    hasSentencePiece: false,
  };
  const architecture = resolveArchitecture(parseModelConfig(readText(folder, 'config.json'), 'config.json'));
  const runner = openRunner(
    createCpuBackend(),
    architecture,
    sourceOf(readTensors(readBytes(folder, 'model.safetensors'))),
  );
  const far = await checkLogLikelihoods(golden.models[name]!, files, runner);
  runner.close();
  expect(far).toBeLessThanOrEqual(LOG_LIKELIHOOD_LIMIT);
});
