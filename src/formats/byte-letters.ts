/** The alphabet of byte-level tokenizers (GPT-2). */

/** Bytes as the letters that stand for them: printable ones for themselves, others by number from 256 on. */
export const BYTE_LETTERS = (() => {
  let others = 256;
  const isPrintable = (byte: number) =>
    (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad && byte < 0x100);
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(isPrintable(byte) ? byte : others++));
})();

export const BYTE_OF_LETTER: ReadonlyMap<string, number> = new Map(
  BYTE_LETTERS.map((letter, byte) => [letter, byte]),
);
