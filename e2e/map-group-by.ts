// Vitest's failure report calls Map.groupBy, which Node 20 does not have: without it a failing run prints nothing.
Map.groupBy ??= (items, keyOf) => {
  const groups = new Map();
  let index = 0;
  for (const item of items) {
    const key = keyOf(item, index++);
    groups.set(key, [...(groups.get(key) ?? []), item]);
  }
  return groups;
};

export {};
