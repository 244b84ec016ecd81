// Fetches the page every 5 seconds and replaces the parts that have changed. Without the script the page reloads
// itself.
const everyMs = 5_000;
const withinMs = 10_000;
// WCAG 2.2.2 requires a way to pause updates.
const pause = document.getElementById('pause');
let isPaused = false;
pause.hidden = false;
pause.addEventListener('click', () => {
  isPaused = !isPaused;
  pause.textContent = isPaused ? 'Resume' : 'Pause';
});

/** Replaces `part` by `next` and restores the scroll position and the focus. */
function replacePart(part, next) {
  // Screen readers announce new content of a status, but no new status.
  if (part.getAttribute('role') === 'status') return part.replaceChildren(...next.childNodes);
  const focused = part.contains(document.activeElement) ? document.activeElement.id : '';
  const kept = [...part.querySelectorAll('[tabindex]')].map((box) => [box.id, box.scrollLeft, box.scrollTop]);
  part.replaceWith(next);
  for (const [id, left, top] of kept) document.getElementById(id)?.scrollTo({ left, top });
  // If the focused element no longer exists, the focus goes to the scrolling element of the part.
  const place = focused && (document.getElementById(focused) ?? next.querySelector('.scroll'));
  if (place) place.focus({ preventScroll: true });
}

/** Replaces the changed parts; their number and order are always the same. */
function show(page) {
  document.title = page.title;
  for (const part of document.querySelectorAll('[data-part]')) {
    const next = page.getElementById(part.id);
    if (next && next.outerHTML !== part.outerHTML) replacePart(part, next);
  }
}

async function refresh() {
  if (isPaused) {
    document.title = 'paused – Pulse';
    return setTimeout(refresh, everyMs);
  }
  const stale = document.getElementById('stale');
  try {
    const response = await fetch(location.href, {
      headers: { Accept: 'text/html' },
      signal: AbortSignal.timeout(withinMs),
    });
    // The viewer was signed out; the same URL shows the form.
    if (response.status === 401 || response.status === 403) return location.reload();
    if (!response.ok) throw new Error(response.statusText);
    show(new DOMParser().parseFromString(await response.text(), 'text/html'));
    stale.hidden = true;
  } catch {
    stale.hidden = false;
    document.title = 'outdated – Pulse';
  }
  setTimeout(refresh, everyMs);
}

// Removes the outcome of a retry from the URL, so that a reload does not show it again.
history.replaceState(null, '', location.pathname);
setTimeout(refresh, everyMs);
