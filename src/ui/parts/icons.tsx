/** Line icons on a 16 px grid, drawn in the current color. All are decoration: the words beside them carry the meaning. */
import type { ReactNode } from 'react';

/** An icon of one line; what is filled stands in `more`. */
const icon = (line: string, more?: ReactNode) => () => (
  <svg
    width="16"
    height="16"
    viewBox="0 0 16 16"
    fill="none"
    stroke="currentColor"
    strokeWidth="1.5"
    strokeLinecap="round"
    strokeLinejoin="round"
    aria-hidden="true"
    focusable="false"
  >
    <path d={line} />
    {more}
  </svg>
);

export const PlusIcon = icon('M8 3.5v9M3.5 8h9');
export const UndoIcon = icon('M3 6.5h6.5a3.5 3.5 0 0 1 0 7H6M3 6.5 5.8 3.7M3 6.5l2.8 2.8');
export const RedoIcon = icon('M13 6.5H6.5a3.5 3.5 0 0 0 0 7H10M13 6.5l-2.8-2.8M13 6.5l-2.8 2.8');
export const SwapIcon = icon('M3 5.5h9.5M10 3l2.5 2.5L10 8M13 10.5H3.5M6 8l-2.5 2.5L6 13');
export const ChevronIcon = icon('m5 6.5 3 3 3-3');
export const MoreIcon = icon('M3.5 8h.01M8 8h.01M12.5 8h.01');
export const CloseIcon = icon('m4 4 8 8M12 4l-8 8');
export const CheckIcon = icon('m3 8.5 3.2 3L13 4.5');
export const WarningIcon = icon('M8 2.2 14.5 13.5h-13zM8 6.5v3M8 11.6v.1');
export const ErrorIcon = icon('M14 8a6 6 0 1 1-12 0 6 6 0 1 1 12 0M8 4.8v3.8M8 11.1v.1');
export const InfoIcon = icon('M14 8a6 6 0 1 1-12 0 6 6 0 1 1 12 0M8 7.4v3.8M8 4.9v.1');
export const SearchIcon = icon('M11.2 7a4.2 4.2 0 1 1-8.4 0 4.2 4.2 0 1 1 8.4 0M10.2 10.2l3.3 3.3');
export const FolderIcon = icon('M1.8 12.5v-9h4l1.6 1.8h6.8v7.2z');
export const DownloadIcon = icon('M8 2.5v7.5M4.8 7 8 10.2 11.2 7M2.5 13.2h11');
export const CopyIcon = icon(
  'M7 5.5h5a1.5 1.5 0 0 1 1.5 1.5v5a1.5 1.5 0 0 1-1.5 1.5h-5a1.5 1.5 0 0 1-1.5-1.5v-5a1.5 1.5 0 0 1 1.5-1.5M10.5 5.5v-3h-8v8h3',
);
export const TrashIcon = icon('M2.5 4h11M6 4V2.5h4V4M4 4l.7 9.5h6.6L12 4');
export const LockIcon = icon(
  'M4.5 7h7a1.5 1.5 0 0 1 1.5 1.5v3.5a1.5 1.5 0 0 1-1.5 1.5h-7a1.5 1.5 0 0 1-1.5-1.5v-3.5a1.5 1.5 0 0 1 1.5-1.5M5.2 7V5a2.8 2.8 0 0 1 5.6 0v2',
);
export const CurveIcon = icon(
  'M2 12.5c3.5 0 3.5-8 6-8s2.5 5 6 5',
  <circle cx="8" cy="4.5" r="1.6" fill="var(--panel)" />,
);
export const GripIcon = icon(
  '',
  <path d="M6 4v.1M10 4v.1M6 8v.1M10 8v.1M6 12v.1M10 12v.1" strokeWidth="2" />,
);
export const DiskIcon = icon(
  'M13.2 4.2a5.2 2 0 1 1-10.4 0 5.2 2 0 1 1 10.4 0M2.8 4.2v7.6c0 1.1 2.3 2 5.2 2s5.2-.9 5.2-2V4.2M2.8 8c0 1.1 2.3 2 5.2 2s5.2-.9 5.2-2',
);
export const SunIcon = icon(
  'M10.8 8a2.8 2.8 0 1 1-5.6 0 2.8 2.8 0 1 1 5.6 0M8 1.5v1.3M8 13.2v1.3M1.5 8h1.3M13.2 8h1.3M3.4 3.4l.9.9M11.7 11.7l.9.9M3.4 12.6l.9-.9M11.7 4.3l.9-.9',
);
export const MoonIcon = icon('M13.3 9.6A5.8 5.8 0 0 1 6.4 2.7a5.8 5.8 0 1 0 6.9 6.9z');
export const SystemThemeIcon = icon(
  'M13.8 8a5.8 5.8 0 1 1-11.6 0 5.8 5.8 0 1 1 11.6 0',
  <path d="M8 2.2v11.6a5.8 5.8 0 0 0 0-11.6z" fill="currentColor" stroke="none" />,
);

/** The mark: three models melting into one. */
export function Mark() {
  return (
    <svg width="20" height="20" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <circle cx="12" cy="12.5" r="8.5" fill="var(--model-0)" />
      <circle cx="20" cy="12.5" r="8.5" fill="var(--model-1)" fillOpacity="0.85" />
      <circle cx="16" cy="20" r="8.5" fill="var(--model-2)" fillOpacity="0.85" />
    </svg>
  );
}
