import { CircleAlert, type IconNode } from 'lucide';
import type { ComponentChildren } from 'preact';
import { Icon } from './icon.tsx';

const widths = ['92%', '78%', '85%', '64%', '88%', '72%'];

/** The shape of what is being loaded. */
export function Skeleton({ lines = 6 }: { readonly lines?: number }) {
  return (
    <div class="skeleton" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, line) => (
        <i key={line} style={{ width: widths[line % widths.length] }} />
      ))}
    </div>
  );
}

/** Shown in place of a list without rows: what would be here, and the first action. */
export function Empty(props: {
  readonly icon: IconNode;
  readonly title: string;
  readonly children?: ComponentChildren;
}) {
  return (
    <div class="state">
      <Icon of={props.icon} />
      <strong>{props.title}</strong>
      {props.children}
    </div>
  );
}

/** An error message, with a button that retries if there is `retry`. Nothing is drawn for an empty message. */
export function Failure({ message, retry }: { readonly message: string; readonly retry?: () => void }) {
  if (message === '') return null;
  return (
    <div class="failure" role="alert">
      <Icon of={CircleAlert} />
      <span>{message}</span>
      {retry !== undefined && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}
