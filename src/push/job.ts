/** A finished output, from this browser's storage or the person's folder, to a model repository on the Hub. */
import { AmalgamError } from '../errors';
import { cardWithResults } from '../formats/card-results';
import { withStudioLink } from '../formats/model-card';
import { HASHES_FILE, withOutputHash } from '../formats/output-hashes';
import { progressMeter } from '../host/progress-meter';
import type { PushProgress, PushReport, PushRequest, PushSource, PushTarget } from '../reports/push';
import { fileSource } from '../sources/file-source';
import type { Hub } from '../sources/hub-request';
import { createRepo, pushTarget, uploadFiles, validateCard } from '../sources/hub-upload';
import { treeOf } from '../sources/tree-hash';
import { type FinishedFile, finishedFiles } from '../write/finished-outputs';

const CARD = 'README.md';

/** The repository that an output would go to, and which of its files would be replaced. */
export async function lookAtTarget(
  hub: Hub,
  repo: string,
  source: PushSource,
  signal?: AbortSignal,
): Promise<PushTarget> {
  const found = await finishedFiles(source);
  const target = await pushTarget(hub, repo, signal);
  return { ...target, taken: found.map((f) => f.path).filter((path) => target.files.includes(path)) };
}

/** @throws DestinationNotEmpty when files would be replaced that the request does not name, and what uploading throws */
export async function runPush(
  request: PushRequest,
  hub: Hub,
  signal: AbortSignal,
  onProgress: (progress: PushProgress) => void,
): Promise<PushReport> {
  const begun = performance.now();
  const { repo, source } = request;
  const meter = progressMeter<PushProgress>(onProgress, () => undefined);
  const found = await withCard(await finishedFiles(source), request);
  let target = await pushTarget(hub, repo, signal);
  requireAgreed(request, target);
  const card = found.find(({ path }) => path === CARD);
  if (card) await validateCard(hub, repo, await card.content.text(), signal);

  const created = target.exists ? false : await createRepo(hub, repo, request.private, signal);
  // one that was made by somebody else meanwhile is not written over
  if (!target.exists) target = await pushTarget(hub, repo, signal);
  requireAgreed(request, target);
  if (target.commit === null) throw notThere(repo, created);
  const { commit, sent } = await uploadFiles(
    hub,
    { repo, files: found, summary: request.summary, parent: target.commit },
    {
      begin: (phase, bytes) => meter.begin(phase, bytes, 0),
      advance: (bytes, path) => meter.advance(bytes, path),
      committing: () => meter.begin('committing', 0, 0),
    },
    signal,
  );
  return {
    repo,
    page: target.page,
    commit,
    created,
    files: found.map(({ path, content }) => ({ path, bytes: content.size, sent: sent.has(path) })),
    seconds: (performance.now() - begun) / 1000,
  };

  function requireAgreed({ replace }: PushRequest, { files: there }: { files: readonly string[] }): void {
    const agreed = new Set(replace);
    const taken = found.map((f) => f.path).filter((path) => there.includes(path) && !agreed.has(path));
    if (taken.length === 0) return;
    throw new AmalgamError(
      'DestinationNotEmpty',
      `${repo} already has ${taken.join(', ')}.`,
      'Confirm that these files may be replaced, or choose another name.',
    );
  }
}

/** The files with a model card that has what was scored since and a link to the studio: its hash is then another one. */
async function withCard(
  files: readonly FinishedFile[],
  { repo, results = [], studio }: PushRequest,
): Promise<readonly FinishedFile[]> {
  const card = files.find(({ path }) => path === CARD);
  if (!card) return files;
  const before = await card.content.text();
  const scored = cardWithResults(before, repo.slice(repo.indexOf('/') + 1), results);
  const text = studio === undefined ? scored : withStudioLink(scored, studio, repo);
  if (text === before) return files;
  const content = new File([text], CARD);
  const hash = await treeOf(fileSource(content, CARD));
  return Promise.all(
    files.map(async (file) => {
      if (file === card) return { path: CARD, content };
      if (file.path !== HASHES_FILE) return file;
      const hashes = withOutputHash(await file.content.text(), CARD, hash);
      return { path: HASHES_FILE, content: new File([hashes], HASHES_FILE) };
    }),
  );
}

function notThere(repo: string, created: boolean): AmalgamError {
  return new AmalgamError(
    'HubError',
    created
      ? `${repo} was created, but the hub does not know it yet.`
      : `The hub says that there is a ${repo} already, but does not show it to your token.`,
    created ? 'Wait a moment and push again.' : 'Choose another name, or give a token that may read it.',
  );
}
