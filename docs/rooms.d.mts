import type { ESTree } from 'vite';

/** What a parsed file imports: by statement, when it is called, or as a type. */
export function importsIn(program: ESTree.Program): { specifier: string; typeOnly: boolean }[];
/** docs/design.md with the drawing of the rooms as their imports are now. */
export function withRooms(page: string): string;
/** The room of a file below `src`. */
export function roomOf(path: string): string;
