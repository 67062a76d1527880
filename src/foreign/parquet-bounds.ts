/** What a parquet file claims, compared with the bytes there are before `hyparquet` makes it. */

import type { parquetHeader, readPage } from 'hyparquet/src/column.js';
import { decompressPage, readDataPage, readDataPageV2 } from 'hyparquet/src/datapage.js';
import { counted } from '../formats/quantity';

export type Decoder = Parameters<typeof readPage>[2];
export type Header = ReturnType<typeof parquetHeader>;

/** Unpacked bytes of a page, and of the pages of a row group that are held together. Writers make pages of a megabyte. */
export const PAGE_BYTES = 256 << 20;

/**
 * Goes over a struct of thrift's compact protocol: no count in it is more than the bytes there are.
 * @returns where it ends
 * @throws RangeError
 */
export function checkStruct(view: DataView, begin: number, depth = 0): number {
  let at = begin;
  const varint = () => {
    for (let value = 0, scale = 1; ; scale *= 128) {
      const byte = view.getUint8(at++);
      value += (byte & 127) * scale;
      if (byte < 128) return value;
      if (scale > 2 ** 63) throw new RangeError('a number is cut off');
    }
  };
  const bounded = (count: number) => {
    if (count <= view.byteLength - at) return count;
    throw new RangeError(
      `${counted(count, 'byte')} or elements where ${view.byteLength - at} bytes are left`,
    );
  };
  const element = (type: number, level: number, isListed: boolean): void => {
    if (level > 32) throw new RangeError('its structs are nested too deep');
    if (type === 1 || type === 2) at += isListed ? 1 : 0;
    else if (type === 3) at += 1;
    else if (type >= 4 && type <= 6) varint();
    else if (type === 7) at += 8;
    else if (type === 8) {
      const length = bounded(varint());
      at += length;
    } else if (type === 9) {
      const head = view.getUint8(at++);
      const count = bounded(head >> 4 === 15 ? varint() : head >> 4);
      for (let i = 0; i < count; i++) element(head & 15, level + 1, true);
    } else if (type === 12) at = checkStruct(view, at, level + 1);
    else throw new RangeError(`a field is of the unknown type ${type}`);
  };
  for (;;) {
    const head = view.getUint8(at++);
    if ((head & 15) === 0) return at;
    if (head >> 4 === 0) varint();
    element(head & 15, depth, false);
  }
}

/**
 * Values that share their beginnings become gigabytes out of a few bytes: the shared lengths are added up first. They stand
 * where the numbers of a column of integers would.
 * @throws RangeError
 */
export function checkShared(header: Header, bytes: Uint8Array<ArrayBuffer>, decoder: Decoder): void {
  const { data_page_header: v1, data_page_header_v2: v2 } = header;
  if ((v1 ?? v2)?.encoding !== 'DELTA_BYTE_ARRAY') return;
  const encoding = 'DELTA_BINARY_PACKED';
  const numbers: Decoder = { ...decoder, type: 'INT32' };
  const { dataPage } = v1
    ? readDataPage(
        decompressPage(bytes, header.uncompressed_page_size, decoder.codec, decoder.compressors),
        { ...v1, encoding },
        numbers,
      )
    : readDataPageV2(bytes, { ...header, data_page_header_v2: { ...v2!, encoding } }, numbers);
  let sum = 0;
  for (const length of dataPage as Int32Array) {
    if (length < 0) throw new RangeError('a value shares a negative length');
    sum += length;
  }
  if (sum > PAGE_BYTES) throw new RangeError(`the values of a page share ${sum} bytes`);
}
