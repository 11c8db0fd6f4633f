"use strict";
// Roles are told by a letter and a shape as well as by a colour.
{
  const LETTERS = { id: "I", near: "N", far: "F", external: "E", csid: "S", excluded: "X" };
  const MEANINGS = {
    id: "in-distribution: what the classifier knows",
    near: "near-OOD: unknown, and akin to a known class",
    far: "far-OOD: unknown, and akin to none",
    external: "training outliers: unknown, and may be trained on",
    csid: "covariate-shifted ID: known classes in another style",
    excluded: "in no set",
  };
  const TITLES = { id: "ID", csid: "shifted ID" };

  site.roleTitle = (role) => TITLES[role] ?? role;

  site.letter = (role) => LETTERS[role];

  /** The mark of a role; with a text, the text stands beside it, else the role is read aloud. */
  site.badge = (role, text) => {
    const mark = { class: `badge ${role}`, title: MEANINGS[role] };
    if (text === undefined) return site.el("span", { ...mark, role: "img", "aria-label": site.roleTitle(role) }, LETTERS[role]);
    return site.el("span", { class: "badged" }, site.el("span", { ...mark, "aria-hidden": "true" }, LETTERS[role]), text);
  };

  /** Marks with counts, in the index's order; `counts` by role name. */
  site.roleCounts = (counts) =>
    site.index.roles
      .filter((role) => counts[role])
      .map((role) => site.badge(role, [site.count(counts[role]), site.el("span", { class: "unseen" }, ` ${site.roleTitle(role)} `)]));

  /** A bar of the shares of the roles; the counts beside it say the same. */
  site.roleBar = (counts) => {
    const parts = site.index.roles.filter((role) => counts[role]);
    return site.el(
      "div",
      { class: "bar", "aria-hidden": "true" },
      parts.map((role) => {
        const part = site.el("span", { class: role });
        part.style.flexGrow = counts[role];
        return part;
      }),
    );
  };

  site.legend = () =>
    site.el("details", { class: "legend" }, site.el("summary", {}, "Meaning of the roles"),
      site.facts(site.index.roles.map((role) => [site.badge(role, site.roleTitle(role)), MEANINGS[role]])));

  /** A button for each role that there is; `changed` gets the set of those that are pressed. */
  site.roleToggles = (counts, pressed, changed) => {
    const buttons = site.index.roles
      .filter((role) => counts[role])
      .map((role) => {
        const button = site.el(
          "button",
          { type: "button", "aria-pressed": String(pressed.has(role)) },
          site.badge(role, `${site.roleTitle(role)} ${site.count(counts[role])}`),
        );
        button.addEventListener("click", () => {
          const on = !pressed.delete(role);
          if (on) pressed.add(role);
          button.setAttribute("aria-pressed", String(on));
          changed(pressed);
        });
        return button;
      });
    return site.el("div", { class: "toggles", role: "group", "aria-label": "Roles shown" }, buttons);
  };
}
