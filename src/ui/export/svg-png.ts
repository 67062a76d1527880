import { AmalgamError } from '../../errors';

/** Pixels for one unit of the drawing: sharp on dense displays and in print. */
const DENSITY = 2;

/**
 * An SVG text as a PNG picture.
 * @throws ExportFailed where the browser cannot draw it, e.g. because it is larger than a canvas may be
 */
export async function svgToPng(svg: string): Promise<Blob> {
  const url = URL.createObjectURL(new Blob([svg], { type: 'image/svg+xml' }));
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = document.createElement('canvas');
    canvas.width = image.naturalWidth * DENSITY;
    canvas.height = image.naturalHeight * DENSITY;
    canvas.getContext('2d')?.drawImage(image, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done, 'image/png'));
    if (!blob) throw new Error('the canvas is empty');
    return blob;
  } catch (cause) {
    throw new AmalgamError(
      'ExportFailed',
      'The charts could not be drawn as a picture.',
      'Save them as SVG instead, which has no size limit.',
      { cause },
    );
  } finally {
    URL.revokeObjectURL(url);
  }
}
