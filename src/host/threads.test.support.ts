/** Threads that answer from this one, with messages between them as between threads. */
import * as Comlink from 'comlink';
import { readingRows } from '../inputs/row-reader';
import { inputName } from '../inputs/stored-tensor';
import type { ModelFolder } from '../sources/model-folder';
import type { OpenSource } from '../store/blobs';
import { startThreadsWith } from './threads';
import type { Inputs } from './weight-inputs';

/** @param serve the calls of a thread, for each anew */
export function startThreadsHere(serve: () => object): void {
  startThreadsWith(() => {
    const { port1, port2 } = new MessageChannel();
    Comlink.expose(serve(), port2);
    return { endpoint: port1, onError: () => {}, terminate: () => port1.close() };
  });
}

/** Inputs from folders as they are. */
export function inputsOf(folders: readonly ModelFolder[]): Inputs {
  const source = (name: string): OpenSource => {
    const files = folders.flatMap((folder) => folder.files.map((file) => [folder.path, file] as const));
    const [, file] = files.find(([folder, { path }]) => inputName(folder, path) === name)!;
    return Object.assign(Object.create(file.open() as object), { close() {} });
  };
  return {
    source,
    stored: source,
    read: readingRows((ref, begin, end) =>
      source(inputName(ref.folder, ref.file)).read(ref.begin + begin, ref.begin + end),
    ),
    close() {},
  };
}
