import half from '../../shaders/lib/half.wgsl?raw';
import philox from '../../shaders/lib/philox.wgsl?raw';
import stamp from '../../shaders/lib/stamp.wgsl?raw';

const LIBRARIES = { half, philox };

/** A kernel's complete source: its own file after the stamp library and the libraries it names. */
export function composeWgsl(own: string, ...libraries: (keyof typeof LIBRARIES)[]): string {
  return [stamp, ...libraries.map((name) => LIBRARIES[name]), own].join('\n');
}
