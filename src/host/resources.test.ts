import { beforeEach, describe, expect, test, vi } from 'vitest';
import * as destinations from '../write/opened-destination';
import { withResources } from './resources';

const discard = vi.fn(async () => undefined);
beforeEach(async () => {
  const opened = { ...(await destinations.openDestination({ kind: 'nowhere' })), discard };
  vi.spyOn(destinations, 'openDestination').mockResolvedValue(opened);
});

describe('withResources', () => {
  test('closes what was opened, the last first, and keeps the output', async () => {
    const closed: string[] = [];
    const result = await withResources(async ({ keep, output }) => {
      keep({ close: () => closed.push('engine') });
      await output({ kind: 'nowhere' });
      keep({ close: () => closed.push('inputs') });
      return 7;
    });
    expect(result).toBe(7);
    expect(closed).toEqual(['inputs', 'engine']);
    expect(discard).not.toHaveBeenCalled();
  });

  test('discards the output of a job that fails before it closes anything', async () => {
    const events: string[] = [];
    discard.mockImplementation(async () => void events.push('discarded'));
    const job = withResources(async ({ keep, output }) => {
      keep({ close: () => events.push('closed') });
      await output({ kind: 'nowhere' });
      throw new Error('the disk is full');
    });
    await expect(job).rejects.toThrow('the disk is full');
    expect(events).toEqual(['discarded', 'closed']);
  });
});
