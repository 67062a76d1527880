/** The small files that depend on the output's vocabulary: the tokenizer, and configs that name ids of tokens. */
import { parseModelConfig } from '../../formats/model-config';
import type { Checkpoint } from '../../inputs/checkpoint';
import { readSmallText } from '../../inputs/header';
import type { Problems } from '../../inputs/problems';
import { findFile } from '../../sources/model-folder';
import type { VocabularyFiles } from '../plan/extras';
import type { ResolvedVocabulary } from './resolved-vocabulary';
import { tokenIds, withTokenIds } from './token-ids';
import { tokenizerFiles } from './tokenizer-files';

const GENERATION = 'generation_config.json';
const MAX_BYTES = 16 * 2 ** 20;

/**
 * @param donor checkpoint whose config and generation config the output takes
 * @throws AmalgamError of reading a text
 */
export async function vocabularyFiles(
  { from, output, config }: ResolvedVocabulary,
  donor: Checkpoint,
  problems: Problems,
): Promise<VocabularyFiles> {
  const tokenizer = await tokenizerFiles(from, output, problems);
  const ids = config && output && tokenIds(config, output);
  const file = ids && findFile(donor.folder, GENERATION);
  if (!file) return { tokenizer, path: from.path, ...(ids ? { ids } : {}) };
  const text = await readSmallText(file, donor.path, MAX_BYTES);
  const { raw } = parseModelConfig(text, `${donor.path}/${GENERATION}`);
  return { tokenizer, path: from.path, ids, generation: withTokenIds(text, raw, ids, GENERATION, problems) };
}
