import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import type { Tone } from '../names.ts';
import { route, setQuery } from '../router.tsx';
import { Label } from './label.tsx';

export interface Tab {
  readonly title: string;
  /** A short mark beside the title, such as a number. */
  readonly mark?: string | number | undefined;
  readonly tone?: Tone;
  readonly content: () => ComponentChildren;
}

/** Returns the index of the shown tab: the tab with this title, or else the first tab. */
function shownTab(tabs: readonly Tab[], wanted: string | undefined): number {
  return Math.max(
    0,
    tabs.findIndex(({ title }) => title.toLowerCase() === wanted),
  );
}

/** The row of tabs. Arrow keys move, and the address keeps the choice. */
export function TabRow({ tabs, label }: { readonly tabs: readonly Tab[]; readonly label: string }) {
  const row = useRef<HTMLDivElement>(null);
  const shown = shownTab(tabs, route.value.query.tab);
  const choose = (index: number): void => {
    setQuery({ tab: index === 0 ? '' : tabs[index]!.title.toLowerCase() });
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const next = (shown + step + tabs.length) % tabs.length;
    choose(next);
    row.current!.querySelectorAll('button')[next]!.focus();
  };
  return (
    <div class="tabs" role="tablist" aria-label={label} ref={row} onKeyDown={onKeyDown}>
      {tabs.map(({ title, mark, tone }, index) => (
        <button
          type="button"
          role="tab"
          key={title}
          id={`tab-${index}`}
          aria-selected={index === shown}
          aria-controls="tab-content"
          tabIndex={index === shown ? 0 : -1}
          onClick={() => choose(index)}
        >
          {title} {mark !== undefined && <Label {...(tone === undefined ? {} : { tone })}>{mark}</Label>}
        </button>
      ))}
    </div>
  );
}

/** The content of the chosen tab. */
export function TabContent({ tabs }: { readonly tabs: readonly Tab[] }) {
  const shown = shownTab(tabs, route.value.query.tab);
  return (
    <div class="panel-body" role="tabpanel" id="tab-content" aria-labelledby={`tab-${shown}`}>
      {tabs[shown]!.content()}
    </div>
  );
}
