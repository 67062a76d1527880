/** Pictures of 300 dots an inch as they are printed: PNG with its density, and one in a PDF page of its size. Pure bytes. */

/** The chunk of a PNG that gives its density, 11 811 pixels a meter, with length and checksum (PNG 3rd edition, 11.3.4.3). */
const PHYS = [
  0, 0, 0, 9, 0x70, 0x48, 0x59, 0x73, 0, 0, 0x2e, 0x23, 0, 0, 0x2e, 0x23, 1, 0x78, 0xa5, 0x3f, 0x76,
];
/** Where the chunk belongs: behind the signature and the header. */
const AFTER_HEADER = 33;

/** A PNG with its density: 300 dots an inch. */
export function densePng(png: Blob): Blob {
  return new Blob([png.slice(0, AFTER_HEADER), Uint8Array.from(PHYS), png.slice(AFTER_HEADER)], {
    type: 'image/png',
  });
}

/**
 * One page with one picture of 300 dpi, without loss (ISO 32000-1, 8.9.5). A library would bring fonts and a hundred times
 * the code: letters like τ and ‖ are in none of the fonts that every reader of PDF has.
 */
export async function pdfOf({
  width,
  height,
  data,
}: Pick<ImageData, 'width' | 'height' | 'data'>): Promise<Blob> {
  const rgb = new Uint8Array(width * height * 3);
  for (let i = 0, o = 0; i < data.length; i += 4, o += 3) rgb.set(data.subarray(i, i + 3), o);
  const packed = new Blob([rgb]).stream().pipeThrough(new CompressionStream('deflate'));
  const pixels = await new Response(packed).blob();
  const [w, h] = [(width * 72) / 300, (height * 72) / 300];
  const draw = `q ${w} 0 0 ${h} 0 0 cm /P Do Q`;
  const image = `/Type/XObject/Subtype/Image/Width ${width}/Height ${height}/ColorSpace/DeviceRGB/BitsPerComponent 8/Filter/FlateDecode`;
  const objects: (string | Blob)[][] = [
    ['<</Type/Catalog/Pages 2 0 R>>'],
    ['<</Type/Pages/Kids[3 0 R]/Count 1>>'],
    [`<</Type/Page/Parent 2 0 R/MediaBox[0 0 ${w} ${h}]/Contents 4 0 R/Resources<</XObject<</P 5 0 R>>>>>>`],
    [`<</Length ${draw.length}>>stream\n${draw}\nendstream`],
    [`<<${image}/Length ${pixels.size}>>stream\n`, pixels, '\nendstream'],
  ];
  const parts: (string | Blob)[] = ['%PDF-1.4\n'];
  let at = 9;
  const offsets = objects.map((object, i) => {
    const begins = at;
    const whole = [`${i + 1} 0 obj\n`, ...object, '\nendobj\n'];
    parts.push(...whole);
    at += whole.reduce((sum, part) => sum + (typeof part === 'string' ? part.length : part.size), 0);
    return begins;
  });
  const rows = offsets.map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`);
  const count = objects.length + 1;
  parts.push(
    `xref\n0 ${count}\n0000000000 65535 f \n${rows.join('')}trailer<</Size ${count}/Root 1 0 R>>\nstartxref\n${at}\n%%EOF\n`,
  );
  return new Blob(parts, { type: 'application/pdf' });
}
