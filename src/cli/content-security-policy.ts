/**
 * The Content-Security-Policy of the built studio. The static build carries it as a `<meta>` element, `npm start`
 * sends it as a header. Pure strings: the build configuration imports this file too.
 *
 * WebAssembly may be compiled (sha256 is); no string ever becomes script.
 *
 * `amalgam` is the one Trusted Types policy; it lets through script URLs of our own origin, for workers.
 */
export const HUB_ORIGINS: readonly string[] = [
  'https://huggingface.co',
  'https://*.huggingface.co',
  'https://*.hf.co',
  // where the Hub has large files sent to when they are pushed: one store a region
  'https://hf-hub-lfs-us-east-1.s3-accelerate.amazonaws.com',
  'https://hf-hub-lfs-eu-west-1.s3-accelerate.amazonaws.com',
];

/**
 * Headers of a page that is isolated from other origins, and of its workers: only there can threads share memory. The service
 * worker sets them on what it keeps.
 */
export const ISOLATION = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
};

/** @param connect origins besides our own that the page may talk to: the Hub and the hosts it redirects to. */
export function contentSecurityPolicy(connect: readonly string[]): string {
  return [
    "default-src 'none'",
    "script-src 'self' 'wasm-unsafe-eval'",
    "worker-src 'self'",
    "style-src 'self'",
    "img-src 'self' data: blob:",
    "font-src 'self'",
    "manifest-src 'self'",
    `connect-src 'self' ${connect.join(' ')}`,
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    'trusted-types amalgam',
  ].join('; ');
}
