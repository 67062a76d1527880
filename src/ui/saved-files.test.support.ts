import { vi } from 'vitest';

/** The files a click makes the browser save, by name. */
export function savedFiles(): Map<string, Promise<string>> {
  const saved = new Map<string, Promise<string>>();
  const blobs = new Map<string, Blob>();
  vi.spyOn(URL, 'createObjectURL').mockImplementation((blob) => {
    const url = `blob:test/${blobs.size}`;
    blobs.set(url, blob as Blob);
    return url;
  });
  vi.spyOn(HTMLAnchorElement.prototype, 'click').mockImplementation(function (this: HTMLAnchorElement) {
    saved.set(this.download, blobs.get(this.href)!.text());
  });
  return saved;
}
