/** docs/design.md with the drawing of the rooms as their imports are now. */
export function withRooms(page: string): string;
