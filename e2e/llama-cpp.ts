/**
 * llama.cpp itself, for tests: its shared libraries as the npm package of node-llama-cpp carries them, called through
 * koffi. What it does with a GGUF file and how it quantizes is the truth for `src/gguf`. Structs are those of llama.h at
 * v0.5.0, the version in the package.
 */
import { join } from 'node:path';
import process from 'node:process';
import koffi from 'koffi';
import { BLOCK_TYPES, type BlockType, rowBytes } from '../src/gguf/block-types';

const F32 = 0;
const NO_FLASH_ATTENTION = 0;
/** Of its log. */
const ERROR = 4;

export interface LlamaModel {
  tokenize(text: string, withSpecial: boolean): number[];
  /** Logits of every position [tokens, vocabulary]. @param lora file of an adapter that acts on top */
  logits(ids: readonly number[], lora?: string): Float32Array;
  /** Seconds of reading a prompt, and of each token behind it. */
  seconds(prompt: readonly number[], tokens: number, threads: number): { prompt: number; tokens: number[] };
  readonly vocabulary: number;
  close(): void;
}

export type Llama = ReturnType<typeof loadLlama>;

const folder = join(import.meta.dirname, '../node_modules/@node-llama-cpp/linux-x64/bins/linux-x64');

/** The package is one for Linux on x64: there its tests run, and fail where it is missing; elsewhere there is none. */
export const hasLlama = process.platform === 'linux' && process.arch === 'x64';

/** The loaded libraries: of the process, since koffi's types have names, and a test may load this module again. */
const shared = globalThis as typeof globalThis & { llamaCpp?: Llama };

/** Loads the libraries, once in a process. */
export function llama(): Llama {
  shared.llamaCpp ??= loadLlama();
  return shared.llamaCpp;
}

function loadLlama() {
  // each is found by the next under its own name
  const open = (name: string) => koffi.load(join(folder, name), { global: true, lazy: true });
  const base = open('libggml-base.so');
  const ggml = open('libggml.v0.5.0.so');
  const lib = open('libllama.v0.5.0.so');

  const pointers = (...names: string[]) => Object.fromEntries(names.map((name) => [name, 'void *']));
  const many = (type: string, ...names: string[]) => Object.fromEntries(names.map((name) => [name, type]));
  koffi.struct('ModelParams', {
    ...pointers('devices', 'overrides'),
    ...many('int32_t', 'gpuLayers', 'splitMode', 'loadMode', 'lazyMode', 'mainGpu'),
    ...pointers('split', 'progress', 'progressData', 'kvOverrides'),
    ...many('bool', 'vocabOnly', 'checkTensors', 'extraBuffers', 'noHost', 'noAlloc', 'loadMtp'),
  });
  koffi.struct('ContextParams', {
    ...many('uint32_t', 'ctx', 'batch', 'ubatch', 'sequences', 'rs', 'outputs', 'outputsPerSequence'),
    ...many('int32_t', 'threads', 'threadsBatch', 'type', 'rope', 'pooling', 'attention', 'flash'),
    ...many('float', 'freqBase', 'freqScale', 'ext', 'attn', 'fast', 'slow'),
    originalContext: 'uint32_t',
    defrag: 'float',
    ...pointers('evalCallback', 'evalData'),
    ...many('int32_t', 'typeK', 'typeV'),
    ...pointers('abort', 'abortData'),
    ...many('bool', 'embeddings', 'offload', 'noPerf', 'opOffload', 'swaFull', 'unified'),
    samplers: 'void *',
    samplerCount: 'size_t',
    other: 'void *',
  });
  koffi.struct('Batch', {
    count: 'int32_t',
    ...pointers('token', 'embd', 'pos', 'sequences', 'sequenceIds', 'logits'),
  });
  koffi.struct('Imatrix', { name: 'const char *', data: 'float *', size: 'size_t' });
  koffi.struct('QuantizeParams', {
    ...many('int32_t', 'threads', 'ftype', 'outputType', 'embeddingType'),
    ...many('bool', 'requantize', 'quantizeOutput', 'onlyCopy', 'pure', 'keepSplit', 'dryRun'),
    imatrix: 'Imatrix *',
    ...pointers('kvOverrides', 'typeOverrides', 'pruned'),
    most: 'size_t',
  });

  const call = {
    quiet: lib.func('void llama_log_set(void *callback, void *data)'),
    backends: ggml.func('void ggml_backend_load_all_from_path(const char *path)'),
    start: lib.func('void llama_backend_init()'),
    modelParams: lib.func('ModelParams llama_model_default_params()'),
    load: lib.func('void *llama_model_load_from_file(const char *path, ModelParams params)'),
    freeModel: lib.func('void llama_model_free(void *model)'),
    vocab: lib.func('void *llama_model_get_vocab(void *model)'),
    vocabSize: lib.func('int32_t llama_vocab_n_tokens(void *vocab)'),
    tokenize: lib.func(
      'int32_t llama_tokenize(void *vocab, const char *text, int32_t length, _Out_ int32_t *tokens, int32_t most, bool special, bool parse)',
    ),
    contextParams: lib.func('ContextParams llama_context_default_params()'),
    context: lib.func('void *llama_init_from_model(void *model, ContextParams params)'),
    freeContext: lib.func('void llama_free(void *context)'),
    loadLora: lib.func('void *llama_adapter_lora_init(void *model, const char *path)'),
    freeLora: lib.func('void llama_adapter_lora_free(void *adapter)'),
    setLoras: lib.func(
      'int32_t llama_set_adapters_lora(void *context, void **adapters, size_t count, float *scales)',
    ),
    decode: lib.func('int32_t llama_decode(void *context, Batch batch)'),
    logits: lib.func('void *llama_get_logits(void *context)'),
    quantizeParams: lib.func('QuantizeParams llama_model_quantize_default_params()'),
    quantize: lib.func(
      'uint32_t llama_model_quantize(const char *from, const char *to, QuantizeParams *params)',
    ),
    chunk: base.func(
      'size_t ggml_quantize_chunk(int type, const float *from, _Out_ uint8_t *to, int64_t start, int64_t rows, int64_t columns, const float *weights)',
    ),
  };
  let complaint = '';
  const listen = (level: number, said: string) => {
    if (level === ERROR) complaint += said;
  };
  const silence = koffi.register(
    listen,
    koffi.pointer(koffi.proto('void Log(int level, const char *text, void *data)')),
  );
  call.quiet(silence, null);
  call.backends(folder);
  call.start();

  return {
    /** @throws Error when llama.cpp does not take the file */
    open(path: string): LlamaModel {
      complaint = '';
      const model = call.load(path, { ...call.modelParams(), gpuLayers: 0 });
      if (!model) throw new Error(`llama.cpp does not load ${path}: ${complaint}`);
      const vocab = call.vocab(model);
      const vocabulary: number = call.vocabSize(vocab);
      return {
        vocabulary,
        tokenize(text, withSpecial) {
          const bytes = Buffer.byteLength(text);
          const tokens = new Int32Array(bytes + 16);
          const count: number = call.tokenize(vocab, text, bytes, tokens, tokens.length, withSpecial, true);
          if (count < 0) throw new Error(`llama.cpp does not tokenize it (${count})`);
          return [...tokens.subarray(0, count)];
        },
        logits(ids, lora) {
          const size = Math.max(32, ids.length);
          const context = call.context(model, {
            ...call.contextParams(),
            ...{ ctx: size, batch: size, ubatch: size, sequences: 1, threads: 1, threadsBatch: 1 },
            ...{ typeK: F32, typeV: F32, flash: NO_FLASH_ATTENTION },
          });
          complaint = '';
          const adapter = lora === undefined ? undefined : call.loadLora(model, lora);
          if (adapter === null) throw new Error(`llama.cpp does not load ${lora}: ${complaint}`);
          if (adapter) call.setLoras(context, [adapter], 1, Float32Array.of(1));
          const token = Int32Array.from(ids);
          const wanted = new Int8Array(ids.length).fill(1);
          const none = { embd: null, pos: null, sequences: null, sequenceIds: null };
          const failed: number = call.decode(context, { count: ids.length, token, ...none, logits: wanted });
          if (failed !== 0) throw new Error(`llama.cpp does not decode (${failed})`);
          const count = ids.length * vocabulary;
          const logits = Float32Array.from(
            koffi.decode(call.logits(context), 'float', count) as Float32Array,
          );
          call.freeContext(context);
          if (adapter) call.freeLora(adapter);
          return logits;
        },
        seconds(prompt, tokens, threads) {
          const context = call.context(model, {
            ...call.contextParams(),
            ...{ ctx: prompt.length + tokens, batch: prompt.length, ubatch: prompt.length, sequences: 1 },
            ...{ threads, threadsBatch: threads },
          });
          const none = { embd: null, pos: null, sequences: null, sequenceIds: null, logits: null };
          const decode = (ids: readonly number[]) => {
            const begun = performance.now();
            const token = Int32Array.from(ids);
            const failed: number = call.decode(context, { count: ids.length, token, ...none });
            if (failed !== 0) throw new Error(`llama.cpp does not decode (${failed})`);
            return (performance.now() - begun) / 1000;
          };
          const read = decode(prompt);
          const each = Array.from({ length: tokens }, (_, i) => decode([prompt[i % prompt.length]!]));
          call.freeContext(context);
          return { prompt: read, tokens: each };
        },
        close: () => call.freeModel(model),
      };
    },
    /** Rows in the reference's blocks. @param weights one for every column, of importance */
    quantizeRows(type: BlockType, values: Float32Array, columns: number, weights?: Float32Array): Uint8Array {
      const rows = values.length / columns;
      const out = new Uint8Array(rows * rowBytes(type, columns));
      call.chunk(BLOCK_TYPES[type].id, values, out, 0, rows, columns, weights ?? null);
      return out;
    },
    /** What so many bytes of blocks stand for. @param type as llama.cpp's functions are called, in lower case */
    dequantizeRows(type: string, bytes: Uint8Array, elements: number): Float32Array {
      const out = new Float32Array(elements);
      const signature = `void dequantize_row_${type}(const uint8_t *from, _Out_ float *to, int64_t count)`;
      base.func(signature)(bytes, out, elements);
      return out;
    },
    /**
     * Quantizes a file as llama-quantize does, with its usual mix.
     * @param imatrix a weight for every column, by the name of the tensor
     */
    quantizeFile(from: string, to: string, ftype: number, imatrix?: ReadonlyMap<string, Float32Array>): void {
      const entries = [...(imatrix ?? [])].map(([name, data]) => ({ name, data, size: data.length }));
      const failed: number = call.quantize(from, to, {
        ...call.quantizeParams(),
        ...{ threads: 1, ftype },
        imatrix: imatrix ? [...entries, { name: null, data: null, size: 0 }] : null,
      });
      if (failed !== 0) throw new Error(`llama.cpp does not quantize ${from} (${failed})`);
    },
  };
}

/** log p of every token of the vocabulary at every position. */
export function logProbabilities(logits: ArrayLike<number>, vocabulary: number): Float64Array {
  const out = new Float64Array(logits.length);
  for (let begin = 0; begin < logits.length; begin += vocabulary) {
    let most = -Infinity;
    for (let i = begin; i < begin + vocabulary; i++) most = Math.max(most, logits[i]!);
    let sum = 0;
    for (let i = begin; i < begin + vocabulary; i++) sum += Math.exp(logits[i]! - most);
    for (let i = begin; i < begin + vocabulary; i++) out[i] = logits[i]! - most - Math.log(sum);
  }
  return out;
}
