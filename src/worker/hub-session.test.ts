import { expect, test } from 'vitest';
import { type FakeHub, READER_TOKEN, startFakeHub } from '../../e2e/fake-hub';
import { type HubWait, waitWords } from '../reports/push';
import { openHubModel } from '../sources/hub';
import { openHubSession } from './hub-session';

async function withHub(act: (hub: FakeHub) => Promise<void>): Promise<void> {
  const files = { 'config.json': '{"model_type":"llama"}', 'w.bin': new Uint8Array(100) };
  const hub = await startFakeHub({ models: [{ id: 'a/open', files }] });
  try {
    await act(hub);
  } finally {
    await hub.close();
  }
}

test('R32: a model that is open follows the token: a new one is sent, one that was taken back is not', async () => {
  await withHub(async (fake) => {
    const session = openHubSession();
    await session.setHub({ url: fake.url, token: READER_TOKEN });
    const model = await openHubModel(session.hub(), 'a/open');
    const readConfig = async () => {
      const from = fake.requests.length;
      await model.files
        .find((f) => f.path === 'config.json')!
        .open()
        .read(0, 5);
      return new Set(fake.requests.slice(from).map((r) => r.authorization));
    };
    expect(await readConfig()).toEqual(new Set([`Bearer ${READER_TOKEN}`]));
    await session.setHub({ token: null });
    expect(await readConfig()).toEqual(new Set([undefined]));
    await session.setHub({ token: READER_TOKEN });
    expect(await readConfig()).toEqual(new Set([`Bearer ${READER_TOKEN}`]));
    // another hub begins without, and the one before has none left
    await session.setHub({ url: 'https://other.example' });
    expect(session.hub().token).toBeUndefined();
    expect(await readConfig()).toEqual(new Set([undefined]));
  });
});

test('R30: a wait that the hub asks for is told with its end, and told to be over', async () => {
  await withHub(async (fake) => {
    const session = openHubSession();
    await session.setHub({ url: fake.url });
    const told: HubWait[][] = [];
    void session.hubWaits((waits) => told.push(waits));
    fake.faults.push({
      path: '/api/models/a/open/revision/HEAD',
      fault: { kind: 'status', status: 429, headers: { 'Retry-After': '1' } },
    });
    const begun = Date.now();
    await openHubModel(session.hub(), 'a/open');
    expect(told.map((waits) => waits.length)).toEqual([1, 0]);
    const [wait] = told[0]!;
    const words = waitWords(wait!, { now: wait!.until - 1500, hasToken: false });
    expect(words.title).toBe(`${wait!.host} asks to wait 2 s: a/open`);
    expect(words.hint).toContain('An access token raises the limit.');
    expect(wait).toMatchObject({ reason: 'rate-limit', host: new URL(fake.url).host, name: 'a/open' });
    expect(wait!.until).toBeGreaterThanOrEqual(begun + 1000);
  });
});

test('R30: a time that a page cannot read is not said to be the hub’s', async () => {
  await withHub(async (fake) => {
    const session = openHubSession();
    await session.setHub({ url: fake.url });
    const told = new Promise<HubWait>((resolve) => {
      void session.hubWaits(([wait]) => wait && resolve(wait));
    });
    fake.faults.push({ path: '/api/models/a/open/revision/HEAD', fault: { kind: 'status', status: 429 } });
    const stop = new AbortController();
    const opening = openHubModel(session.hub(), 'a/open', undefined, stop.signal);
    const wait = await told;
    expect(waitWords(wait, { now: wait.until - 15_000, hasToken: true })).toEqual({
      title: `${wait.host} asks for fewer requests and does not show for how long; trying again in 15 s: a/open`,
      hint: 'Wait, or cancel what asks for it.',
    });
    stop.abort();
    await expect(opening).rejects.toMatchObject({ code: 'Canceled' });
  });
});

test('what a hub is waited for can be given up: all that asked ends as canceled, and nothing is waited for', async () => {
  await withHub(async (fake) => {
    const session = openHubSession();
    const told: HubWait[][] = [];
    const all = new Promise<void>((resolve) => {
      void session.hubWaits((waits) => {
        told.push(waits);
        if (waits.length === 2) resolve();
      });
    });
    const path = '/api/models/a/open/revision/HEAD';
    for (let i = 0; i < 2; i++) fake.faults.push({ path, fault: { kind: 'status', status: 429 } });
    await session.setHub({ url: fake.url });
    const opening = [1, 2].map(() => openHubModel(session.hub(), 'a/open'));
    const ends = Promise.allSettled(opening);
    await all;
    await session.endHubWaits();
    for (const ended of await ends)
      expect(ended).toMatchObject({ status: 'rejected', reason: { code: 'Canceled' } });
    expect(told.at(-1)).toEqual([]);
  });
});
