/**
 * The one error type of Amalgam. `code` is stable and machine-readable, `message` is a sentence for a person that
 * names the file, tensor or field, `hint` the next step. Nobody matches on message text.
 */
export class AmalgamError extends Error {
  readonly code: ErrorCode;
  readonly hint: string;

  constructor(code: ErrorCode, message: string, hint: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'AmalgamError';
    this.code = code;
    this.hint = hint;
  }
}

/** Every way Amalgam refuses or fails. Grouped by the room that throws it. */
export type ErrorCode =
  // formats: a file is not what it should be
  | 'HeaderTooSmall'
  | 'HeaderTooLarge'
  | 'HeaderInvalid'
  | 'DuplicateKey'
  | 'InvalidOffset'
  | 'ShapeMismatch'
  | 'FileSizeMismatch'
  | 'UnsafeName'
  | 'UnsafePath'
  | 'LimitExceeded'
  | 'JsonInvalid'
  | 'IndexInvalid'
  | 'ConfigInvalid'
  | 'LfsPointer'
  | 'NotSafetensors'
  | 'AdapterUnsupported'
  | 'AdapterInvalid'
  | 'RecipeInvalid'
  | 'LinkInvalid'
  // sources and store: bytes cannot be had
  | 'NotFound'
  | 'Unauthorized'
  | 'Gated'
  | 'RateLimited'
  | 'Offline'
  | 'HubError'
  | 'RangeIgnored'
  | 'TransferInvalid'
  | 'IntegrityError'
  | 'StorageFull'
  | 'StorageFailed'
  | 'StorageUnavailable'
  | 'FileChanged'
  // plan: the recipe does not fit the models
  | 'PlanHasErrors'
  | 'ModelUnknown'
  // compute
  | 'NoWebGpu'
  | 'NoWebAssembly'
  | 'GpuCompile'
  | 'GpuValidation'
  | 'GpuOutOfMemory'
  | 'GpuLost'
  | 'GpuUnverified'
  | 'NonFinite'
  | 'MergeUndefined'
  // models, forward and evaluate: a model cannot be run, or not on this input
  | 'ArchitectureUnsupported'
  | 'TensorMissing'
  | 'TokenizerUnsupported'
  | 'TokenizerInvalid'
  | 'VocabularyMismatch'
  | 'TextEmpty'
  | 'TextTooShort'
  | 'TokenOutOfRange'
  | 'ContextTooLong'
  // gguf: what that format cannot express
  | 'GgufUnsupported'
  // dataset: a file of a dataset repo cannot be read as text
  | 'DatasetInvalid'
  | 'DatasetUnsupported'
  | 'ColumnMissing'
  | 'SplitMissing'
  // tasks: a task file that cannot be used
  | 'TaskInvalid'
  | 'NotUtf8'
  // compare: the models do not belong together, or there is nothing to do
  | 'NothingToCompare'
  | 'NothingToExtract'
  // collapse: there is nothing to do
  | 'NothingToCollapse'
  // ui: a file of charts or numbers cannot be made
  | 'ExportFailed'
  // run and output
  | 'Canceled'
  | 'Busy'
  | 'DestinationNotEmpty'
  | 'DestinationFailed'
  | 'RunChanged'
  | 'WorkerDied'
  | 'Usage'
  | 'Internal';

export const REPORT_IT = 'This is a fault in Amalgam. Copy the details into a bug report.';

/** The error for what cannot be unless Amalgam itself is wrong. */
export function fault(message: string): AmalgamError {
  return new AmalgamError('Internal', message, REPORT_IT);
}

/** The error as plain data, as it crosses the worker boundary and as the studio and the command print it. */
export interface ErrorReport {
  code: ErrorCode;
  message: string;
  hint: string;
}

/** The error of a report. */
export function fromErrorReport({ code, message, hint }: ErrorReport): AmalgamError {
  return new AmalgamError(code, message, hint);
}

/** Report of anything thrown. An unknown throw becomes `Internal` with its own text. */
export function errorReport(thrown: unknown): ErrorReport {
  if (thrown instanceof AmalgamError) {
    return { code: thrown.code, message: thrown.message, hint: thrown.hint };
  }
  if (thrown instanceof DOMException && thrown.name === 'AbortError') {
    return { code: 'Canceled', message: 'Canceled.', hint: 'Start again when you like.' };
  }
  const text = thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : String(thrown);
  return { code: 'Internal', message: `Something unexpected happened: ${text}`, hint: REPORT_IT };
}

/** Whether `thrown` is a DOMException of that name. */
export function isDomException(thrown: unknown, name: string): boolean {
  return thrown instanceof DOMException && thrown.name === name;
}
