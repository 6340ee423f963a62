import { type Signal, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { readApi } from './api.ts';
import { type ApiDocument, operationsOf } from './api-reference/document.ts';
import { pages } from './pages.ts';
import { Label } from './parts/label.tsx';
import { quickActions } from './quick-actions.ts';
import { requests } from './requests/request-feed.tsx';
import { goTo } from './router.tsx';
import { hrefOf } from './routes.ts';

/** Something that the palette finds. */
interface Find {
  readonly kind: string;
  readonly title: string;
  readonly note?: string;
  readonly run: () => void;
}

const MAX_FINDS = 40;
/**
 * Returns the finds whose title, kind or note contains every word, those whose title begins with the text first.
 */
export function rankFinds<Each extends { title: string; kind: string; note?: string }>(
  all: readonly Each[],
  text: string,
): Each[] {
  const wanted = text.trim().toLowerCase();
  const words = wanted.split(/\s+/);
  const rank = ({ title }: Each): number => {
    const lower = title.toLowerCase();
    return lower.startsWith(wanted) ? 0 : lower.includes(wanted) ? 1 : 2;
  };
  return all
    .filter(({ title, kind, note = '' }) => {
      const whole = `${title} ${kind} ${note}`.toLowerCase();
      return words.every((word) => whole.includes(word));
    })
    .sort((a, b) => rank(a) - rank(b))
    .slice(0, MAX_FINDS);
}

interface PaletteProps {
  readonly isOpen: Signal<boolean>;
  /** The reader's input. */
  readonly text: Signal<string>;
  /** The position of the chosen find. */
  readonly at: Signal<number>;
  /** The id of the element of the chosen find. */
  readonly activeId: Signal<string | undefined>;
  /** Receives the function that handles the keys of the field. */
  readonly onKeyDown: { current: ((event: KeyboardEvent) => void) | undefined };
}

/** What the dialog finds under its field: pages, wallets, requests and operations, and actions to run. */
export function Palette({ isOpen, text, at, activeId, onKeyDown }: PaletteProps) {
  const note = useSignal('');
  const wallets = useSignal<readonly Find[]>([]);
  const operations = useSignal<readonly Find[]>([]);
  useEffect(() => {
    readApi('listWallets', { query: { limit: 100 } }).then(
      ({ data }) => {
        wallets.value = data.map(({ id, address, chain_type: chain, display_name: name }) => ({
          ...{ kind: 'wallet', title: name ?? address, note: `${chain} ${address} ${id}` },
          run: () => goTo(hrefOf('wallets', [id])),
        }));
      },
      () => undefined,
    );
    fetch('/openapi.json')
      .then((response) => response.json())
      .then(
        (document: ApiDocument) => {
          operations.value = operationsOf(document).map(({ id, summary }) => ({
            ...{ kind: 'operation', title: id, note: summary },
            run: () => goTo(hrefOf('api', [id], { text: id })),
          }));
        },
        () => undefined,
      );
  }, []);
  const finds = rankFinds(
    [...fixedFinds(note, isOpen), ...wallets.value, ...operations.value, ...requestFinds()],
    text.value,
  );
  const choose = (find: Find | undefined): void => {
    if (find === undefined) return;
    note.value = '';
    find.run();
    if (find.kind !== 'action') isOpen.value = false;
  };
  onKeyDown.current = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === 'Enter') choose(finds[at.value]);
    if (step === undefined || finds.length === 0) return;
    event.preventDefault();
    at.value = (at.value + step + finds.length) % finds.length;
    document.getElementById(`find-${at.value}`)?.scrollIntoView({ block: 'nearest' });
  };
  useEffect(() => {
    activeId.value = finds.length === 0 ? undefined : `find-${at.value}`;
  }, [at.value, finds.length]);
  return (
    <>
      <p role="status" class="note-line">
        {note.value || (finds.length === 0 ? 'Nothing found.' : '')}
      </p>
      <div id="finds" role="listbox" aria-label="Found">
        {finds.map((find, index) => (
          <div
            key={`${find.kind} ${find.title} ${find.note ?? ''}`}
            id={`find-${index}`}
            role="option"
            aria-selected={index === at.value}
            onClick={() => choose(find)}
          >
            <span>{find.title}</span>
            {find.note !== undefined && <small>{find.note}</small>}
            <Label>{find.kind}</Label>
          </div>
        ))}
      </div>
    </>
  );
}

function fixedFinds(note: Signal<string>, isOpen: Signal<boolean>): Find[] {
  return [
    ...pages.map(({ id, title }) => ({ kind: 'page', title, run: () => goTo(hrefOf(id)) })),
    ...quickActions.map(({ title, run }) => ({
      ...{ kind: 'action', title },
      run: () => {
        note.value = 'Running…';
        run().then(
          ({ text, href }) => {
            note.value = text;
            if (href === undefined) return;
            goTo(href);
            isOpen.value = false;
          },
          (error: Error) => {
            note.value = error.message;
          },
        );
      },
    })),
  ];
}

function requestFinds(): Find[] {
  return requests.value
    .slice(-200)
    .reverse()
    .map(({ id, operation, method, path, status }) => ({
      ...{ kind: 'request', title: `${operation ?? `${method} ${path}`} ${status}`, note: id },
      run: () => goTo(hrefOf('requests', [id])),
    }));
}
