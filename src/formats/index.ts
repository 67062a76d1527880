/** `amalgam/formats`: the formats Amalgam reads and writes, for other programs. Plain data; no network, no files, no GPU. */
export { AmalgamError, type ErrorCode } from '../errors';
export { type AdapterConfig, parseAdapterConfig } from './adapter-config';
export type { Dtype } from './dtype';
export type { Recipe, RecipeModel, RecipeSlice, RecipeStage } from './recipe';
export { formatRecipe } from './recipe-format';
export { type ParsedRecipe, parseRecipe } from './recipe-yaml';
export {
  headerLength,
  parseSafetensorsHeader,
  type SafetensorsHeader,
  type StoredTensor,
  tensorBytes,
} from './safetensors-header';
export { buildSafetensorsHeader, type PlannedTensor, sortForFile } from './safetensors-write';
