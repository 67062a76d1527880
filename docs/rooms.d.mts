/** docs/design.md with the drawing of the rooms as their imports are now. */
export function withRooms(page: string): string;
/** The room of a file below `src`. */
export function roomOf(path: string): string;
