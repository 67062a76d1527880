/** An item that one of several workers has opened; reading may begin before it is run. */
interface Opened<Result> {
  run(): Promise<Result>;
  /** Called once, whether or not it was run. */
  close(): void;
}

/**
 * Shares items out among workers, one per engine: each takes the next item that none has taken, and opens one ahead of
 * the one it runs. Results are in the order of the items, whichever worker made them. After a failure no more is taken.
 * @param workers each opens an item for itself
 * @throws the first failure, once no worker runs any more
 */
export async function shareOut<Item, Result>(
  items: readonly Item[],
  workers: readonly ((item: Item) => Opened<Result>)[],
): Promise<Result[]> {
  const results: Result[] = [];
  let next = 0;
  let failure: { thrown: unknown } | undefined;

  const work = async (open: (item: Item) => Opened<Result>) => {
    const take = () => {
      if (next >= items.length || failure) return undefined;
      const index = next++;
      return { index, opened: open(items[index]!) };
    };
    let ahead: ReturnType<typeof take>;
    try {
      let current = take();
      await undefined; // every worker has its first before one looks ahead
      while (current) {
        try {
          ahead = take();
          results[current.index] = await current.opened.run();
        } finally {
          current.opened.close();
        }
        current = ahead;
        ahead = undefined;
      }
    } catch (thrown) {
      failure ??= { thrown };
    } finally {
      ahead?.opened.close();
    }
  };
  await Promise.all(workers.map(work));
  if (failure) throw failure.thrown;
  return results;
}
