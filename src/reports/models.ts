/** Models as the window sees them: what is opened, and what a search on the Hub finds. */

export interface ModelInfo {
  /** Reference in a recipe: a path, or `owner/name@commit` for the Hub. */
  ref: string;
  title: string;
  origin: 'sample' | 'local' | 'disk' | 'hub';
  kind: 'checkpoint' | 'adapter';
  /** `model_type` of config.json, or of the adapter's base where known. */
  family?: string;
  parameters: number;
  /** Bytes of its weight files. */
  bytes: number;
  /** sha256 (hex) of the tensors' names, dtypes, shapes and places: distinguishes models of the same name. */
  headers: string;
  /** Dtype, or format of quantized weights → number of tensors. */
  dtypes: Readonly<Record<string, number>>;
  layers?: number;
  /**
   * Shapes of its weights by their names with `#` for every number (`layers.#.mlp.up_proj.weight` → `64×32`), of an adapter those
   * of the weights that its factors are for. Absent where they do not show it: of quantized weights.
   */
  weights?: Readonly<Record<string, readonly string[]>>;
  /** Of images or video, or a LoRA of such a model. */
  isImage?: true;
  /** For an adapter: method and rank in words, and the base it names. */
  adapter?: { summary: string; rank: number; baseModel?: string };
  /** Hub only. */
  commit?: string;
  license?: string;
  /** The model that its page says it is a copy of, in fewer bits. */
  copyOf?: string;
  /** Its author decides who may read it. */
  gated?: true;
}

/** A file handed over from the window: the worker reads it in place by slices. */
export interface LocalFile {
  /** Relative path, forward slashes, beginning with the folder's own name. */
  path: string;
  file: File;
}

export interface HubQuery {
  text: string;
  /** Only models derived from this base (`base_model:adapter:<id>` / `base_model:finetune:<id>`). */
  derivedFrom?: { base: string; kind: 'adapter' | 'finetune' };
  limit: number;
}

export interface HubHit {
  id: string;
  downloads: number;
  likes: number;
  updatedAt: string;
  gated: false | 'auto' | 'manual';
  private: boolean;
  /** Parameter count from the safetensors index, where the Hub knows it. */
  parameters?: number;
}

export interface ConfigComparison {
  differences: ConfigDifference[];
  words: string[];
}

export interface ConfigDifference {
  /** Path of the field, parts joined by dots. */
  field: string;
  /** JSON text of the value, null where the field is absent. */
  base: string | null;
  finetuned: string | null;
  /** The same setting in another spelling, or a field that does not change what a model computes. */
  harmless: boolean;
}
