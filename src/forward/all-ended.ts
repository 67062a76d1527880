/** Values of all promises, once all have ended. @throws the first failure, when none is under way any more */
export async function allEnded<T>(underWay: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(underWay);
  return Promise.all(underWay);
}
